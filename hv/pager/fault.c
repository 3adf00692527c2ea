/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fault threads: see pager.h. Each polls its VMs' userfaultfds and processes. It gives its stock
 * back before it blocks where that was asked for, and goes idle after a turn without a fault.
 *
 * A userfaultfd is shared with its VMM, which may do to it what it likes: nothing here waits for
 * what only the VMM can bring about, and nothing takes the longer the more it asks for at once.
 */
#include <config.h>

#include "hv/pager/pager_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

/* Read in one go; a flood of one VM's must not keep the others waiting. */
#define EVENTS_AT_ONCE 64
/* Each of which may drop all that the VM has: pages of that together, some milliseconds. */
#define DROPPED_AT_ONCE (UINT64_C(1) << 26)
/* When the pager ends: runs of pages that are filled of one VM before the next one's turn. */
#define RUNS_AT_ONCE 4
/* And how often one is tried at once while something is being dropped: some 100 us. */
#define TRIES 100
/*
 * Turns in which next to nothing of a VM could be filled then, together: 10 s. Beside a balloon
 * that is at work a turn has hundreds of pages.
 */
#define STUCK_TURNS 1000
#define STUCK_PAGES 16

/* In linux/userfaultfd.h from 6.6 on; older kernels say EINVAL or ENOTTY. */
struct poison {
	struct uffdio_range range;
	uint64_t mode;
	int64_t updated;
};
#define POISON _IOWR(UFFDIO, 0x08, struct poison)

enum filled {
	FILLED,
	AGAIN,	 /* a remove event is to be read first, or there is no memory now */
	REFUSED, /* this memory cannot be filled by the page */
};

/* --- what is known of pages --- */

static bool is_set(const uint64_t *bits, uint64_t page)
{
	return bits[page / 64] >> page % 64 & 1;
}

static void set(uint64_t *bits, uint64_t page)
{
	bits[page / 64] |= UINT64_C(1) << page % 64;
}

/* From now on these are zeros; how many of them were charged. */
static uint64_t drop(struct pager_vm *vm, uint64_t from, uint64_t to)
{
	uint64_t n = 0, next;

	for (; from < to; from = next) {
		uint64_t word = from / 64, mask = ~UINT64_C(0) << from % 64;

		next = (word + 1) * 64;
		if (next > to)
			mask &= ~UINT64_C(0) >> (next - to);
		n += (uint64_t)__builtin_popcountll(vm->charged_pages[word] & mask);
		/* What is so already is not written: it costs no memory a second time. */
		if (vm->charged_pages[word] & mask)
			vm->charged_pages[word] &= ~mask;
		if (~vm->dropped_pages[word] & mask)
			vm->dropped_pages[word] |= mask;
	}
	return n;
}

/* The page's number, and its place in the file; false: it is in no region. */
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

static uint64_t address_of(const struct pager_vm *vm, uint64_t page)
{
	size_t i = 0;

	for (; page >= vm->regions[i].pages; i++)
		page -= vm->regions[i].pages;
	return vm->regions[i].base + page * POLICY_PAGE_SIZE;
}

/* --- pages --- */

/* What the file has there. */
static bool read_pages(
	const struct pager_vm *vm, uint64_t offset, size_t nr, unsigned char *ret_pages)
{
	size_t done = 0, size = nr * POLICY_PAGE_SIZE;
	ssize_t n;

	while (done < size) {
		n = pread(vm->memory, ret_pages + done, size - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/*
 * What the kernel said when one page was to be filled. One that is there already, or that is not
 * watched any more, is the kernel's: who waits for it is woken, and sees. *ret_new: it was filled.
 */
static enum filled outcome(struct pager_vm *vm, uint64_t address, int r, bool *ret_new)
{
	struct uffdio_range range = { .start = address, .len = POLICY_PAGE_SIZE };

	*ret_new = r == 0;
	if (r == 0)
		return FILLED;
	switch (errno) {
	case EAGAIN:
	case ENOMEM: /* also its own cgroup's: better late than zeros */
		return AGAIN;
	case EEXIST:
	case ENOENT:
		ioctl(vm->uffd, UFFDIO_WAKE, &range);
		return FILLED;
	case ESRCH: /* nobody is there to wait: its pidfd says so next */
		return FILLED;
	default:
		return REFUSED;
	}
}

static int fill_zeros(struct pager_vm *vm, uint64_t address)
{
	struct uffdio_zeropage zero = { .range = { .start = address, .len = POLICY_PAGE_SIZE } };

	return ioctl(vm->uffd, UFFDIO_ZEROPAGE, &zero);
}

/* The file does not have it: an error for who touches it; zeros where the kernel knows no such. */
static int fill_error(struct pager_vm *vm, uint64_t address)
{
	struct poison poison = { .range = { .start = address, .len = POLICY_PAGE_SIZE } };
	int r = ioctl(vm->uffd, POISON, &poison);

	if (r < 0 && (errno == EINVAL || errno == ENOTTY))
		r = fill_zeros(vm, address);
	vm->failed += r == 0;
	return r;
}

/* Fills one page and wakes who waits for it. *ret_new: it was not there before. */
static enum filled fill(
	struct pager_thread *t, struct pager_vm *vm, uint64_t address, bool *ret_new)
{
	uint64_t page = 0, offset = 0;
	struct uffdio_copy copy = {
		.dst = address, .src = (uintptr_t)t->page, .len = POLICY_PAGE_SIZE
	};
	enum filled filled;

	/* What it did not tell is zeros, as it is without us. */
	if (!find_page(vm, address, &page, &offset) || vm->memory < 0 ||
		is_set(vm->dropped_pages, page))
		return outcome(vm, address, fill_zeros(vm, address), ret_new);
	if (read_pages(vm, offset, 1, t->page))
		return outcome(vm, address, ioctl(vm->uffd, UFFDIO_COPY, &copy), ret_new);
	filled = outcome(vm, address, fill_error(vm, address), ret_new);
	*ret_new = false;
	return filled;
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

/* Who waits for memory that was told has it from the kernel from now on. */
static void unregister(struct pager_vm *vm)
{
	for (size_t i = 0; i < vm->nr_regions; i++) {
		struct uffdio_range all = { .start = vm->regions[i].base,
			.len = vm->regions[i].pages * POLICY_PAGE_SIZE };

		ioctl(vm->uffd, UFFDIO_UNREGISTER, &all);
	}
}

/*
 * Memory that cannot be filled by the page, such as huge pages: the VM's faults are the kernel's
 * from now on. What it was charged stays until it is gone.
 */
static void leave(struct pager_vm *vm, uint64_t address)
{
	struct uffdio_range page = { .start = address, .len = POLICY_PAGE_SIZE };

	vm->left = true;
	unregister(vm);
	ioctl(vm->uffd, UFFDIO_UNREGISTER, &page); /* outside of what it told */
	if (vm->memory >= 0)
		close(vm->memory);
	vm->memory = -1;
	vm->nr_waiting = vm->nr_doubts = 0;
}

/*
 * A thread of the VMM that drops pages goes on when its event was read, and only then they go: what
 * another thread faults in meanwhile goes with them, and nobody tells. So what is filled first of
 * the dropped is looked at once more.
 */
static void doubt(struct pager_vm *vm, uint64_t page, uint64_t address)
{
	if (!vm->doubtful || !is_set(vm->dropped_pages, page))
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

	if (!find_page(vm, address, &page, &offset) || !is_set(vm->charged_pages, page))
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

/* One of the VM's pages; charged where it was not. */
static enum filled fill_charged(
	struct pager_thread *t, struct pager_vm *vm, uint64_t page, uint64_t address, bool over)
{
	bool is_new, charged = !is_set(vm->charged_pages, page);
	enum filled filled;

	if (charged && !charge_page(t, vm, over)) {
		if (!css_killed(&vm->leaf->css))
			return AGAIN;
		charged = false; /* it is being taken down: its last pages are not counted */
	}
	filled = fill(t, vm, address, &is_new);
	if (is_new)
		doubt(vm, page, address);
	if (charged && is_new) {
		set(vm->charged_pages, page);
		vm->charged++;
	} else if (charged) {
		uncharge_pages(t, vm, 1);
	}
	return filled;
}

/* True: resolved, or nobody waits for it any more. */
static bool resolve(struct pager_thread *t, struct pager_vm *vm, uint64_t address, bool over)
{
	uint64_t page, offset;
	enum filled filled;
	bool is_new;

	if (find_page(vm, address, &page, &offset)) {
		filled = fill_charged(t, vm, page, address, over);
	} else {
		vm->left = true;
		filled = fill(t, vm, address, &is_new);
	}
	if (filled == REFUSED)
		leave(vm, address);
	return filled != AGAIN;
}

static void fault(struct pager_thread *t, struct pager_vm *vm, uint64_t address)
{
	bool full = vm->nr_waiting == PAGER_WAITING_MAX;
	struct uffdio_range page = { .len = POLICY_PAGE_SIZE };

	vm->faults++;
	address -= address % POLICY_PAGE_SIZE;
	page.start = address;
	if (resolve(t, vm, address, full))
		return;
	if (full) {
		ioctl(vm->uffd, UFFDIO_WAKE, &page); /* it faults anew */
		return;
	}
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

		n += drop(vm, before + from, before + to);
		before += r->pages;
	}
	vm->doubtful = PAGER_DOUBTFUL;
	vm->removed += n;
	vm->charged -= n;
	uncharge_pages(t, vm, n);
}

/*
 * Never blocks, whatever the VMM does to the descriptor that it shares. Before Linux 6.10 only the
 * flag says so: who takes it away, and reads what there is, just in between, can hang a thread.
 */
static ssize_t read_events(struct pager_vm *vm, struct uffd_msg *events, size_t nr)
{
	struct iovec iov = { .iov_base = events, .iov_len = nr * sizeof(events[0]) };
	ssize_t size = preadv2(vm->uffd, &iov, 1, -1, RWF_NOWAIT);

	if (size >= 0 || errno != EOPNOTSUPP)
		return size;
	fcntl(vm->uffd, F_SETFL, O_NONBLOCK);
	return read(vm->uffd, iov.iov_base, iov.iov_len);
}

/* Nothing more is heard of it. */
static void give_up(struct pager_vm *vm)
{
	leave(vm, 0);
	close(vm->uffd);
	vm->uffd = -1;
}

static void take_event(struct pager_thread *t, struct pager_vm *vm, const struct uffd_msg *event)
{
	if (event->event == UFFD_EVENT_PAGEFAULT)
		fault(t, vm, event->arg.pagefault.address);
	else if (event->event == UFFD_EVENT_FORK)
		close((int)event->arg.fork.ufd); /* of the child, which has the kernel then */
	else if (event->event == UFFD_EVENT_REMAP)
		vm->left = true; /* what is touched there is outside of what it told */
}

/* Removes first: a page that is filled before its remove event was read would be dropped again. */
static void take_events(struct pager_thread *t, struct pager_vm *vm, short revents)
{
	struct uffd_msg events[EVENTS_AT_ONCE];
	uint64_t most = pages_min(EVENTS_AT_ONCE, DROPPED_AT_ONCE / vm->nr_pages);
	ssize_t size;
	size_t n;

	if (!(revents & POLLIN)) /* it would block, and tells nothing until it does not */
		fcntl(vm->uffd, F_SETFL, O_NONBLOCK);
	size = read_events(vm, events, most > 0 ? most : 1);
	n = size > 0 ? (size_t)size / sizeof(events[0]) : 0;
	if (size < 0 && errno != EAGAIN && errno != EINTR)
		give_up(vm);
	for (size_t i = 0; i < n; i++) {
		if (events[i].event == UFFD_EVENT_REMOVE || events[i].event == UFFD_EVENT_UNMAP)
			removed(t, vm, events[i].arg.remove.start, events[i].arg.remove.end);
	}
	for (size_t i = 0; i < n; i++)
		take_event(t, vm, &events[i]);
}

/* Nobody is charged for it any more. */
static void let_go(struct pager_thread *t, struct pager_vm *vm)
{
	uncharge_pages(t, vm, vm->charged);
	vm->charged = 0;
	if (vm->leaf)
		css_put(&vm->leaf->css);
	vm->leaf = NULL;
}

/* The planner's, when it is done: nothing of it is touched here afterwards. */
static void end(struct pager_vm *vm)
{
	if (vm->uffd >= 0)
		close(vm->uffd);
	vm->uffd = -1;
	vm->gone = true;
}

/*
 * Uncharged there, where it was charged to one, and charged here. Of the new group there is a
 * reference, of the old there was one.
 */
static void move(struct pager_thread *t, struct pager_vm *vm)
{
	struct memcg *to = atomic_exchange(&vm->to, NULL), *refused;
	uint64_t charged = vm->charged;

	if (!to)
		return;
	uncharge_pages(t, vm, charged);
	if (vm->leaf)
		css_put(&vm->leaf->css);
	vm->leaf = to;
	if (charged == 0 || charge_try(t->stock, to, charged, &refused) == 0 ||
		charge_over(to, charged) == 0)
		return;
	/* That group is gone already: nobody is charged for what it has. */
	memset(vm->charged_pages, 0, (vm->nr_pages + 63) / 64 * sizeof(vm->charged_pages[0]));
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
			let_go(t, vm);
			end(vm);
			any = true;
			continue;
		}
		if (vm->to) {
			move(t, vm);
			any = true; /* its stock is idle again later */
		}
		if (vm->uffd >= 0 && t->polls[i].revents) {
			take_events(t, vm, t->polls[i].revents);
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

/* --- the pager ends --- */

/* Pages from that one on, of one region, that are to come from the file still. */
static size_t run_from(const struct pager_vm *vm, uint64_t page)
{
	uint64_t end = 0;
	size_t n = 0;

	for (size_t i = 0; end <= page; i++)
		end += vm->regions[i].pages;
	while (n < PAGER_RUN && page + n < end && !is_set(vm->charged_pages, page + n) &&
		!is_set(vm->dropped_pages, page + n))
		n++;
	return n;
}

/* That one, and the 63 behind it. */
static bool is_known(const struct pager_vm *vm, uint64_t page)
{
	return page % 64 == 0 &&
	       (vm->charged_pages[page / 64] | vm->dropped_pages[page / 64]) == UINT64_MAX;
}

/* A run that does not go in one go: its first page by itself. False: not now. */
static bool fill_first(struct pager_thread *t, struct pager_vm *vm)
{
	bool is_new;

	/* REFUSED: the kernel's, whatever we do. */
	if (fill(t, vm, address_of(vm, vm->filled), &is_new) == AGAIN)
		return false;
	vm->filled++;
	return true;
}

/*
 * Nothing can be filled from when a thread of the VMM begins to drop pages until its event was read
 * and it has gone on. Where a balloon is at work the moments in between are short: the run is at
 * hand then, and goes as a whole. False: not now.
 */
static bool fill_run(struct pager_thread *t, struct pager_vm *vm, size_t nr)
{
	uint64_t address = address_of(vm, vm->filled), page, offset = 0;
	struct uffdio_copy copy;

	if (!find_page(vm, address, &page, &offset) || !read_pages(vm, offset, nr, t->run))
		return fill_first(t, vm);
	for (int i = 0; i < TRIES; i++) {
		copy = (struct uffdio_copy){
			.dst = address, .src = (uintptr_t)t->run, .len = nr * POLICY_PAGE_SIZE
		};
		if (ioctl(vm->uffd, UFFDIO_COPY, &copy) == 0 || copy.copy > 0) {
			vm->filled += (uint64_t)copy.copy / POLICY_PAGE_SIZE;
			return true;
		}
		if (errno != EAGAIN)
			return fill_first(t, vm);
		take_events(t, vm, POLLIN);
		if (vm->memory < 0 || run_from(vm, vm->filled) < nr)
			return true; /* it is another run now */
	}
	return false;
}

/*
 * What the VM has not touched yet would be zeros without us: it comes from the file now, a portion
 * at a time. True: all of it is there.
 */
static bool fill_some(struct pager_thread *t, struct pager_vm *vm)
{
	size_t nr;

	for (size_t runs = 0; vm->memory >= 0 && vm->filled < vm->nr_pages;) {
		nr = run_from(vm, vm->filled);
		if (nr == 0) {
			vm->filled += is_known(vm, vm->filled) ? 64 : 1;
			continue;
		}
		if (runs++ == RUNS_AT_ONCE || !fill_run(t, vm, nr))
			return false;
	}
	return true;
}

/* A thread of the VMM that drops pages waits until its event was read: nobody else would. */
static bool drops(struct pager_vm *vm)
{
	struct uffdio_zeropage none = { 0 };

	return ioctl(vm->uffd, UFFDIO_ZEROPAGE, &none) < 0 && errno == EAGAIN;
}

/* True: the VM can do without us; with the VMM's own descriptor open its faults would wait. */
static bool finish(struct pager_thread *t, struct pager_vm *vm, short revents, bool turn)
{
	if (revents)
		take_events(t, vm, revents);
	retry(t, vm);
	if (fill_some(t, vm) && vm->nr_waiting == 0) {
		unregister(vm);
		if (!drops(vm))
			return true;
	}
	if (turn) {
		vm->stuck += vm->filled - vm->filled_then < STUCK_PAGES;
		vm->filled_then = vm->filled;
	}
	/* Then what it lacks it goes on waiting for: zeros would be worse. */
	return vm->stuck >= STUCK_TURNS;
}

/* All VMs in portions, and their faults meanwhile. */
static void finish_some(struct pager_thread *t, bool turn)
{
	struct pager_vm **at = &t->vms, *vm;

	for (size_t i = PAGER_POLLS_OWN; (vm = *at); i += 2) {
		if (!gone(&t->polls[i + 1]) && vm->uffd >= 0 &&
			!finish(t, vm, t->polls[i].revents, turn)) {
			at = &vm->next_of_thread;
			continue;
		}
		*at = vm->next_of_thread;
		end(vm);
	}
}

static void finish_all(struct pager_thread *t)
{
	take_arriving(t);
	for (struct pager_vm *vm = t->vms; vm; vm = vm->next_of_thread)
		let_go(t, vm);
	charge_stock_idle(t->stock);
	set_turns(t, true);
	while (t->vms) {
		if (poll(t->polls, list_polls(t), 0) >= 0)
			finish_some(t, take_count(&t->polls[1]));
		sched_yield();
	}
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
	finish_all(t);
	return NULL;
}
