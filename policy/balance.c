/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "policy/balance.h"

uint64_t balance_limit(uint64_t ceiling, uint64_t max)
{
	return pages_min(ceiling, max);
}

uint64_t balance_loosened(
	bool capped, uint64_t usage, uint64_t limit, uint64_t at_least, unsigned int fraction)
{
	if (!capped)
		return limit;
	return pages_min(limit, usage + pages_max(at_least, usage / fraction));
}

uint64_t balance_fed(uint64_t soft_limit, uint64_t limit)
{
	return pages_min(soft_limit, limit);
}

bool balance_swaps(const struct vm_sample *before, const struct vm_sample *now)
{
	return vm_knows(before, VM_SWAP_IN) && vm_knows(now, VM_SWAP_IN) && !now->stale &&
	       pages_sub(now->swap_in, before->swap_in) >= BALANCE_SWAP_IN;
}

void balance_share(
	struct balance_gift *gifts, size_t nr, uint64_t pages, uint64_t granule, uint64_t piece)
{
	uint64_t sum = 0, due = 0, most;

	for (size_t i = 0; i < nr; i++)
		sum += gifts[i].demand;
	for (size_t i = 0; i < nr; i++) {
		uint64_t demand = gifts[i].demand;

		due += pages >= sum ? demand : pages_mul_div(pages, demand, sum);
		most = pages_min(due, demand);
		if (most < demand)
			most = pages_round_down(most, granule);
		gifts[i].gift = most >= pages_min(piece, demand) ? most : 0;
		due -= gifts[i].gift;
	}
}
