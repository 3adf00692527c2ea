/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fault threads: see pager.h. Each polls its VMs' userfaultfds and processes. It gives its stock
 * back before it blocks where that was asked for, and goes idle after a turn without a fault.
 */
#include <config.h>

#include "hv/pager/pager_internal.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Read in one go; a flood of one VM's must not keep the others waiting. */
#define EVENTS_AT_ONCE 64

/* In linux/userfaultfd.h from 6.6 on; older kernels say EINVAL or ENOTTY. */
struct poison {
	struct uffdio_range range;
	uint64_t mode;
	int64_t updated;
};
#define POISON _IOWR(UFFDIO, 0x08, struct poison)

enum filled { FILLED, AGAIN, LOST };

/* The page's place in vm->pages, and in the file; false: it is in no region. */
static bool find_page(
	const struct pager_vm *vm, uint64_t address, uint64_t *ret_page, uint64_t *ret_offset)
{
	uint64_t before = 0;

	for (size_t i = 0; i < vm->nr_regions; i++) {
		const struct pager_region *r = &vm->regions[i];
		uint64_t page = (address - r->base) / POLICY_PAGE_SIZE;

		if (address >= r->base && page < r->pages) {
			*ret_page = before + page;
			*ret_offset = r->offset + page * POLICY_PAGE_SIZE;
			return true;
		}
		before += r->pages;
	}
	return false;
}

/* The thread's page becomes what the file has there. */
static bool read_page(struct pager_thread *t, const struct pager_vm *vm, uint64_t offset)
{
	size_t done = 0;
	ssize_t n;

	while (done < sizeof(t->page)) {
		n = pread(
			vm->memory, t->page + done, sizeof(t->page) - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/*
 * Fills one page and wakes who waits for it. *ret_new: it was not there before. AGAIN: a remove
 * event is to be read first; LOST: the process is gone, or this memory is not the VM's to be
 * filled.
 */
static enum filled fill(
	struct pager_thread *t, struct pager_vm *vm, uint64_t address, bool *ret_new)
{
	uint64_t page, offset;
	struct uffdio_range range = { .start = address, .len = POLICY_PAGE_SIZE };
	struct uffdio_copy copy = {
		.dst = address, .src = (uintptr_t)t->page, .len = POLICY_PAGE_SIZE
	};
	struct uffdio_zeropage zero = { .range = range };
	struct poison poison = { .range = range };
	int r;

	*ret_new = true;
	if (!find_page(vm, address, &page, &offset))
		return LOST;
	if (vm->memory < 0 || vm->pages[page] & PAGER_DROPPED) {
		r = ioctl(vm->uffd, UFFDIO_ZEROPAGE, &zero);
	} else if (read_page(t, vm, offset)) {
		r = ioctl(vm->uffd, UFFDIO_COPY, &copy);
	} else {
		vm->failed++;
		*ret_new = false;
		r = ioctl(vm->uffd, POISON, &poison);
	}
	if (r == 0)
		return FILLED;
	*ret_new = false;
	if (errno == EAGAIN)
		return AGAIN;
	if (errno != EEXIST)
		return LOST;
	ioctl(vm->uffd, UFFDIO_WAKE, &range);
	return FILLED;
}

static void refused_by(struct pager *pager, const struct memcg *group)
{
	uint64_t one = 1;

	if (atomic_exchange(&pager->refused, group->id) == 0 &&
		write(pager->event, &one, sizeof(one)) < 0)
		return; /* full: it is readable */
}

static void uncharge_pages(struct pager_thread *t, struct pager_vm *vm, uint64_t pages)
{
	if (vm->leaf && pages > 0)
		uncharge(t->stock, vm->leaf, pages);
}

/* One page for the VM; false: there is no room now. */
static bool charge_page(struct pager_thread *t, struct pager_vm *vm, bool over)
{
	struct memcg *refused = NULL;
	int r = vm->leaf ? charge_try(t->stock, vm->leaf, 1, &refused) : 0;

	if (r == 0)
		return true;
	if (r == -ENOMEM)
		refused_by(t->pager, refused);
	if (r == -ENODEV || !over)
		return false;
	r = charge_over(vm->leaf, 1);
	vm->over += r == 0;
	return r == 0;
}

/* What the VM has not touched yet would be zeros without us: all of it comes from the file now. */
static void fill_rest(struct pager_thread *t, struct pager_vm *vm)
{
	uint64_t at = 0;
	bool is_new, charged;

	for (size_t i = 0; i < vm->nr_regions; at += vm->regions[i++].pages) {
		for (uint64_t p = 0; p < vm->regions[i].pages; p++) {
			if (vm->pages[at + p])
				continue;
			charged = !t->pager->ends && charge_page(t, vm, true);
			is_new = false;
			if (fill(t, vm, vm->regions[i].base + p * POLICY_PAGE_SIZE, &is_new) !=
				FILLED) {
				if (charged)
					uncharge_pages(t, vm, 1);
				return; /* gone */
			}
			if (charged && is_new) {
				vm->pages[at + p] |= PAGER_CHARGED;
				vm->charged++;
			} else if (charged) {
				uncharge_pages(t, vm, 1);
			}
		}
	}
}

/*
 * The VM's faults are the kernel's from now on: with the VMM's own descriptor open they would wait
 * for ever. What it was charged stays until it is gone.
 */
static void leave(struct pager_thread *t, struct pager_vm *vm, uint64_t address)
{
	struct uffdio_range page = { .start = address, .len = POLICY_PAGE_SIZE };

	vm->left = true;
	if (vm->memory >= 0)
		fill_rest(t, vm);
	ioctl(vm->uffd, UFFDIO_UNREGISTER, &page); /* outside of what it told */
	for (size_t i = 0; i < vm->nr_regions; i++) {
		struct uffdio_range all = { .start = vm->regions[i].base,
			.len = vm->regions[i].pages * POLICY_PAGE_SIZE };

		ioctl(vm->uffd, UFFDIO_UNREGISTER, &all);
	}
	close(vm->uffd);
	vm->uffd = -1;
	vm->nr_waiting = vm->nr_doubts = 0;
}

/*
 * A thread of the VMM that drops pages goes on when its event was read, and only then they go: what
 * another thread faults in meanwhile goes with them, and nobody tells. So what is filled first of
 * the dropped is looked at once more.
 */
static void doubt(struct pager_vm *vm, uint64_t page, uint64_t address)
{
	if (!vm->doubtful || !(vm->pages[page] & PAGER_DROPPED))
		return;
	vm->doubtful--;
	if (vm->nr_doubts < PAGER_DOUBTS_MAX)
		vm->doubts[vm->nr_doubts++] = (struct pager_wait){ .address = address };
}

/* Counted it is there: where it went it is zeros again. False: not now. */
static bool make_sure(struct pager_thread *t, struct pager_vm *vm, uint64_t address)
{
	uint64_t page, offset;
	bool is_new;

	if (!find_page(vm, address, &page, &offset) || !(vm->pages[page] & PAGER_CHARGED))
		return true;
	return fill(t, vm, address, &is_new) != AGAIN;
}

static void settle_doubts(struct pager_thread *t, struct pager_vm *vm)
{
	size_t left = 0;

	for (size_t i = 0; i < vm->nr_doubts; i++) {
		struct pager_wait d = vm->doubts[i];

		if (++d.turns < PAGER_DOUBT_TURNS || !make_sure(t, vm, d.address))
			vm->doubts[left++] = d;
	}
	vm->nr_doubts = left;
}

/* True: resolved, or nobody waits for it any more. */
static bool resolve(struct pager_thread *t, struct pager_vm *vm, uint64_t address, bool over)
{
	uint64_t page, offset;
	enum filled filled;
	bool is_new, charged;

	if (!find_page(vm, address, &page, &offset)) {
		leave(t, vm, address);
		return true;
	}
	charged = !(vm->pages[page] & PAGER_CHARGED);
	if (charged && !charge_page(t, vm, over)) {
		if (!css_killed(&vm->leaf->css))
			return false;
		charged = false; /* it is being taken down: its last pages are not counted */
	}
	filled = fill(t, vm, address, &is_new);
	if (filled == FILLED && is_new)
		doubt(vm, page, address);
	if (charged && filled == FILLED && is_new) {
		vm->pages[page] |= PAGER_CHARGED;
		vm->charged++;
	} else if (charged) {
		uncharge_pages(t, vm, 1);
	}
	if (filled == LOST)
		leave(t, vm, address);
	return filled != AGAIN;
}

static void fault(struct pager_thread *t, struct pager_vm *vm, uint64_t address)
{
	bool full = vm->nr_waiting == PAGER_WAITING_MAX;

	vm->faults++;
	address -= address % POLICY_PAGE_SIZE;
	if (resolve(t, vm, address, full) || full)
		return;
	vm->waited++;
	vm->waiting[vm->nr_waiting++] = (struct pager_wait){ .address = address };
}

/* Those that waited longest first; with a turn gone by, or the stock's others asked. */
static void retry(struct pager_thread *t, struct pager_vm *vm)
{
	size_t n = vm->nr_waiting, left = 0;

	for (size_t i = 0; i < n && vm->nr_waiting; i++) {
		struct pager_wait w = vm->waiting[i];

		if (resolve(t, vm, w.address, ++w.turns >= PAGER_WAIT_TURNS))
			continue;
		vm->waiting[left++] = w;
	}
	vm->nr_waiting = vm->nr_waiting ? left : 0;
}

/* The balloon dropped it: uncharged in one go, and zeros from now on. */
static void removed(struct pager_thread *t, struct pager_vm *vm, uint64_t start, uint64_t end)
{
	uint64_t n = 0, before = 0;

	for (size_t i = 0; i < vm->nr_regions; i++) {
		const struct pager_region *r = &vm->regions[i];
		uint64_t from = pages_sub(start, r->base) / POLICY_PAGE_SIZE;
		uint64_t to = pages_min(pages_sub(end, r->base) / POLICY_PAGE_SIZE, r->pages);

		for (uint64_t p = from; p < to; p++) {
			n += vm->pages[before + p] & PAGER_CHARGED ? 1 : 0;
			vm->pages[before + p] = PAGER_DROPPED;
		}
		before += r->pages;
	}
	vm->doubtful = PAGER_DOUBTFUL;
	vm->removed += n;
	vm->charged -= n;
	uncharge_pages(t, vm, n);
}

/* Removes first: a page that is filled before its remove event was read would be dropped again. */
static void take_events(struct pager_thread *t, struct pager_vm *vm)
{
	struct uffd_msg events[EVENTS_AT_ONCE];
	ssize_t size = read(vm->uffd, events, sizeof(events));
	size_t n = size > 0 ? (size_t)size / sizeof(events[0]) : 0;

	if (size < 0 && errno != EAGAIN && errno != EINTR)
		leave(t, vm, 0);
	for (size_t i = 0; i < n; i++) {
		if (events[i].event == UFFD_EVENT_REMOVE || events[i].event == UFFD_EVENT_UNMAP)
			removed(t, vm, events[i].arg.remove.start, events[i].arg.remove.end);
	}
	for (size_t i = 0; i < n && vm->uffd >= 0; i++) {
		if (events[i].event == UFFD_EVENT_PAGEFAULT)
			fault(t, vm, events[i].arg.pagefault.address);
		else if (events[i].event == UFFD_EVENT_FORK || events[i].event == UFFD_EVENT_REMAP)
			leave(t, vm, 0); /* a VMM does neither with its guest's memory */
	}
}

/* Its memory is gone, or the pager ends. Nothing of it is touched here afterwards. */
static void end(struct pager_thread *t, struct pager_vm *vm)
{
	uint64_t charged = vm->charged;

	if (vm->uffd >= 0)
		leave(t, vm, 0);
	uncharge_pages(t, vm, charged);
	vm->charged = 0;
	if (vm->leaf)
		css_put(&vm->leaf->css);
	vm->gone = true;
}

/* Uncharged there, charged here. Of the new group there is a reference, of the old there was one.
 */
static void move(struct pager_thread *t, struct pager_vm *vm)
{
	struct memcg *to = atomic_exchange(&vm->to, NULL), *refused;
	uint64_t charged = vm->charged;

	if (!to)
		return;
	uncharge_pages(t, vm, charged);
	css_put(&vm->leaf->css);
	vm->leaf = to;
	if (charged == 0 || charge_try(t->stock, to, charged, &refused) == 0 ||
		charge_over(to, charged) == 0)
		return;
	/* That group is gone already: nobody is charged for what it has. */
	for (uint64_t at = 0, i = 0; i < vm->nr_regions; at += vm->regions[i++].pages)
		for (uint64_t p = 0; p < vm->regions[i].pages; p++)
			vm->pages[at + p] &= (uint8_t)~PAGER_CHARGED;
	vm->charged = 0;
}

static void take_arriving(struct pager_thread *t)
{
	struct pager_vm *vm = atomic_exchange(&t->arriving, NULL), *next;

	for (; vm; vm = next) {
		next = vm->next_of_thread;
		vm->next_of_thread = t->vms;
		t->vms = vm;
		move(t, vm); /* where it was to before it was here */
	}
}

static bool gone(const struct pollfd *process)
{
	return process->revents & (POLLIN | POLLERR | POLLHUP | POLLNVAL);
}

/*
 * Who waits, and what is in doubt, is looked at in each turn; there is one: *ret_waits,
 * *ret_doubts. True: something happened.
 */
static bool serve(struct pager_thread *t, bool turn, bool *ret_waits, bool *ret_doubts)
{
	struct pager_vm **at = &t->vms, *vm;
	bool any = false;

	*ret_waits = *ret_doubts = false;
	for (size_t i = PAGER_POLLS_OWN; (vm = *at); i += 2) {
		if (gone(&t->polls[i + 1])) {
			*at = vm->next_of_thread;
			end(t, vm);
			any = true;
			continue;
		}
		if (vm->to) {
			move(t, vm);
			any = true; /* its stock is idle again later */
		}
		if (vm->uffd >= 0 && t->polls[i].revents) {
			take_events(t, vm);
			any = true;
		}
		if (turn && vm->nr_waiting)
			retry(t, vm);
		if (turn)
			settle_doubts(t, vm);
		*ret_waits |= vm->nr_waiting > 0;
		*ret_doubts |= vm->nr_doubts > 0;
		at = &vm->next_of_thread;
	}
	return any;
}

static size_t list_polls(struct pager_thread *t)
{
	size_t n = 0;

	t->polls[n++] = (struct pollfd){ .fd = t->wake, .events = POLLIN };
	t->polls[n++] = (struct pollfd){ .fd = t->turns, .events = POLLIN };
	for (struct pager_vm *vm = t->vms; vm; vm = vm->next_of_thread) {
		t->polls[n++] = (struct pollfd){ .fd = vm->uffd, .events = POLLIN };
		t->polls[n++] = (struct pollfd){ .fd = vm->process, .events = POLLIN };
	}
	return n;
}

static bool take_count(const struct pollfd *poll)
{
	uint64_t n;

	return poll->revents && read(poll->fd, &n, sizeof(n)) == sizeof(n);
}

static void set_turns(struct pager_thread *t, bool on)
{
	const struct timespec turn = { .tv_nsec = on ? PAGER_TURN_MS * 1000000 : 0 };
	const struct itimerspec spec = { .it_interval = turn, .it_value = turn };

	timerfd_settime(t->turns, 0, &spec, NULL); /* fails for no valid time */
}

void *pager_thread_main(void *arg)
{
	struct pager_thread *t = arg;
	bool idle = true, waits = false, doubts = false, any = false, turn, woken;

	while (!t->pager->ends) {
		size_t n = list_polls(t);

		charge_stock_serve(t->stock);
		if (poll(t->polls, n, -1) <= 0)
			continue;
		/* Before anything is looked at: who wakes it meanwhile wakes it again. */
		woken = take_count(&t->polls[0]);
		turn = take_count(&t->polls[1]);
		any |= serve(t, turn, &waits, &doubts);
		if (woken)
			take_arriving(t);
		if (idle && any) {
			idle = false;
			set_turns(t, true);
		} else if (!idle && turn && !any && !waits) {
			charge_stock_idle(t->stock);
			idle = !doubts;
			set_turns(t, doubts);
		}
		any &= !turn; /* a whole turn without a fault */
	}
	for (take_arriving(t); t->vms; t->vms = t->vms->next_of_thread)
		end(t, t->vms);
	charge_stock_idle(t->stock);
	return NULL;
}
