/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <config.h>

#include "tests/unit/faults.h"
#include "tests/unit/suite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define LIVE 65536 /* a power of two; far more than a run has */
#define GONE ((void *)1)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool armed, tracking, held, injected;
static uint64_t calls, fails_at;
static const char *what = "";
static void *live[LIVE];
static size_t nr_live;

void faults_arm(uint64_t nth)
{
	pthread_mutex_lock(&lock);
	memset(live, 0, sizeof(live));
	nr_live = 0;
	armed = tracking = true;
	held = injected = false;
	calls = 0;
	fails_at = nth;
	what = "";
	pthread_mutex_unlock(&lock);
}

bool faults_disarm(void)
{
	bool did;

	pthread_mutex_lock(&lock);
	armed = false;
	did = injected;
	pthread_mutex_unlock(&lock);
	return did;
}

const char *faults_what(void)
{
	return what;
}

void faults_hold(bool hold)
{
	pthread_mutex_lock(&lock);
	held = hold;
	pthread_mutex_unlock(&lock);
}

size_t faults_live(void)
{
	return nr_live;
}

/* True: this call is to fail. */
static bool fails(const char *name)
{
	bool fail;

	pthread_mutex_lock(&lock);
	fail = armed && !held && ++calls == fails_at;
	if (fail) {
		injected = true;
		what = name;
	}
	pthread_mutex_unlock(&lock);
	return fail;
}

bool faults_hit(const char *name)
{
	return fails(name);
}

static size_t place(const void *p)
{
	return ((uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48 & (LIVE - 1);
}

static void *note(void *p)
{
	size_t i = place(p);

	pthread_mutex_lock(&lock);
	if (p && tracking && !held && nr_live < LIVE / 2) {
		while (live[i] && live[i] != GONE)
			i = (i + 1) & (LIVE - 1);
		live[i] = p;
		nr_live++;
	}
	pthread_mutex_unlock(&lock);
	return p;
}

/* Places at the end of a row of others are free again: what is not there is soon known. */
static void forget(const void *p)
{
	size_t i = place(p);

	pthread_mutex_lock(&lock);
	while (p && live[i] && live[i] != p)
		i = (i + 1) & (LIVE - 1);
	if (p && live[i] == p) {
		live[i] = GONE;
		nr_live--;
		if (!live[(i + 1) & (LIVE - 1)])
			for (; live[i] == GONE; i = (i - 1) & (LIVE - 1))
				live[i] = NULL;
	}
	pthread_mutex_unlock(&lock);
}

/* The linker's names; they belong to it. */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t nr, size_t size);
void *__wrap_reallocarray(void *p, size_t nr, size_t size);
void __real_free(void *p);
void __wrap_free(void *p);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
char *__wrap_strndup(const char *text, size_t size);
int __wrap_asprintf(char **ret_text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
ssize_t __real_read(int fd, void *buf, size_t size);
ssize_t __wrap_read(int fd, void *buf, size_t size);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __real_bind(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length);
int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog);

int __real_fflush(FILE *file);
int __wrap_fflush(FILE *file);
int __real_fclose(FILE *file);
int __wrap_fclose(FILE *file);
int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __real_chmod(const char *path, mode_t mode);
int __wrap_chmod(const char *path, mode_t mode);
int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __real_connect(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length);
int __real_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
ssize_t __real_recv(int fd, void *buf, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t size, int flags);
ssize_t __real_send(int fd, const void *buf, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t size, int flags);
int __real_getsockopt(int fd, int level, int option, void *value, socklen_t *length);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *length);
int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
ssize_t __real_pread(int fd, void *buf, size_t size, off_t at);
ssize_t __wrap_pread(int fd, void *buf, size_t size, off_t at);
ssize_t __real_write(int fd, const void *buf, size_t size);
ssize_t __wrap_write(int fd, const void *buf, size_t size);
char *__real_fgets(char *text, int size, FILE *file);
char *__wrap_fgets(char *text, int size, FILE *file);
FILE *__real_fdopen(int fd, const char *mode);
FILE *__wrap_fdopen(int fd, const char *mode);
DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);
int __real_fstat(int fd, struct stat *ret);
int __wrap_fstat(int fd, struct stat *ret);
int __real_eventfd(unsigned int count, int flags);
int __wrap_eventfd(unsigned int count, int flags);
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __real_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout);
int __real_pthread_create(
	pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg);
int __wrap_pthread_create(
	pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg);

#define FAIL_OR(name, error, failed, real)                                                         \
	do {                                                                                       \
		if (fails(name)) {                                                                 \
			errno = error;                                                             \
			return failed;                                                             \
		}                                                                                  \
		return real;                                                                       \
	} while (0)

void *__wrap_malloc(size_t size)
{
	FAIL_OR("malloc", ENOMEM, NULL, note(__real_malloc(size)));
}

void *__wrap_calloc(size_t nr, size_t size)
{
	FAIL_OR("calloc", ENOMEM, NULL, note(__real_calloc(nr, size)));
}

static void *moved(void *from, void *to)
{
	if (to && from)
		forget(from);
	return note(to);
}

void *__wrap_realloc(void *p, size_t size)
{
	FAIL_OR("realloc", ENOMEM, NULL, moved(p, __real_realloc(p, size)));
}

void *__wrap_reallocarray(void *p, size_t nr, size_t size)
{
	FAIL_OR("reallocarray", ENOMEM, NULL, moved(p, __real_reallocarray(p, nr, size)));
}

void __wrap_free(void *p)
{
	forget(p);
	__real_free(p);
}

char *__wrap_strdup(const char *text)
{
	FAIL_OR("strdup", ENOMEM, NULL, note(__real_strdup(text)));
}

char *__wrap_strndup(const char *text, size_t size)
{
	FAIL_OR("strndup", ENOMEM, NULL, note(__real_strndup(text, size)));
}

int __wrap_asprintf(char **ret_text, const char *format, ...)
{
	va_list args;
	int r;

	if (fails("asprintf")) {
		errno = ENOMEM;
		return -1;
	}
	va_start(args, format);
	r = vasprintf(ret_text, format, args);
	va_end(args);
	if (r >= 0)
		note(*ret_text);
	return r;
}

int __wrap_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	FAIL_OR("open", EMFILE, -1, __real_open(path, flags, mode));
}

ssize_t __wrap_read(int fd, void *buf, size_t size)
{
	FAIL_OR("read", EIO, -1, __real_read(fd, buf, size));
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	FAIL_OR("fopen", EMFILE, NULL, __real_fopen(path, mode));
}

int __wrap_fsync(int fd)
{
	FAIL_OR("fsync", ENOSPC, -1, __real_fsync(fd));
}

int __wrap_rename(const char *from, const char *to)
{
	FAIL_OR("rename", EROFS, -1, __real_rename(from, to));
}

DIR *__wrap_opendir(const char *path)
{
	FAIL_OR("opendir", EMFILE, NULL, __real_opendir(path));
}

int __wrap_socket(int domain, int type, int protocol)
{
	FAIL_OR("socket", ENFILE, -1, __real_socket(domain, type, protocol));
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	FAIL_OR("bind", EACCES, -1, __real_bind(fd, address, length));
}

int __wrap_listen(int fd, int backlog)
{
	FAIL_OR("listen", EADDRINUSE, -1, __real_listen(fd, backlog));
}

int __wrap_fflush(FILE *file)
{
	FAIL_OR("fflush", ENOSPC, EOF, __real_fflush(file));
}

/* The stream is gone all the same. */
int __wrap_fclose(FILE *file)
{
	bool fail = fails("fclose");
	int r = __real_fclose(file);

	if (!fail)
		return r;
	errno = ENOSPC;
	return EOF;
}

int __wrap_unlink(const char *path)
{
	FAIL_OR("unlink", EROFS, -1, __real_unlink(path));
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	FAIL_OR("mkdir", ENOSPC, -1, __real_mkdir(path, mode));
}

int __wrap_chmod(const char *path, mode_t mode)
{
	FAIL_OR("chmod", EPERM, -1, __real_chmod(path, mode));
}

int __wrap_flock(int fd, int operation)
{
	FAIL_OR("flock", ENOLCK, -1, __real_flock(fd, operation));
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	FAIL_OR("connect", EACCES, -1, __real_connect(fd, address, length));
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	FAIL_OR("accept4", EMFILE, -1, __real_accept4(fd, address, length, flags));
}

ssize_t __wrap_recv(int fd, void *buf, size_t size, int flags)
{
	FAIL_OR("recv", ECONNRESET, -1, __real_recv(fd, buf, size, flags));
}

ssize_t __wrap_send(int fd, const void *buf, size_t size, int flags)
{
	FAIL_OR("send", ECONNRESET, -1, __real_send(fd, buf, size, flags));
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
	FAIL_OR("getsockopt", ENOBUFS, -1, __real_getsockopt(fd, level, option, value, length));
}

int __wrap_openat(int folder, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	FAIL_OR("openat", EMFILE, -1, __real_openat(folder, path, flags, mode));
}

ssize_t __wrap_pread(int fd, void *buf, size_t size, off_t at)
{
	FAIL_OR("pread", EIO, -1, __real_pread(fd, buf, size, at));
}

/* A counter, which has no type, takes what is written as long as it is not full. */
ssize_t __wrap_write(int fd, const void *buf, size_t size)
{
	struct stat st;

	if (__real_fstat(fd, &st) == 0 && !(st.st_mode & S_IFMT))
		return __real_write(fd, buf, size);
	FAIL_OR("write", ENOSPC, -1, __real_write(fd, buf, size));
}

/* So that the stream knows of it: what is behind cannot be read from now on. */
char *__wrap_fgets(char *text, int size, FILE *file)
{
	int nothing;

	if (fails("fgets")) {
		nothing = __real_open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup3(nothing, fileno(file), O_CLOEXEC);
		close(nothing);
		__fpurge(file);
	}
	return __real_fgets(text, size, file);
}

FILE *__wrap_fdopen(int fd, const char *mode)
{
	FAIL_OR("fdopen", ENOMEM, NULL, __real_fdopen(fd, mode));
}

DIR *__wrap_fdopendir(int fd)
{
	FAIL_OR("fdopendir", ENOMEM, NULL, __real_fdopendir(fd));
}

int __wrap_fstat(int fd, struct stat *ret)
{
	FAIL_OR("fstat", ENOMEM, -1, __real_fstat(fd, ret));
}

int __wrap_eventfd(unsigned int count, int flags)
{
	FAIL_OR("eventfd", EMFILE, -1, __real_eventfd(count, flags));
}

int __wrap_epoll_create1(int flags)
{
	FAIL_OR("epoll_create1", EMFILE, -1, __real_epoll_create1(flags));
}

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	FAIL_OR("epoll_ctl", ENOSPC, -1, __real_epoll_ctl(epoll, operation, fd, event));
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
	FAIL_OR("epoll_wait", EINTR, -1, __real_epoll_wait(epoll, events, most, timeout));
}

int __wrap_pthread_create(
	pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	return fails("pthread_create") ? EAGAIN : __real_pthread_create(thread, attr, run, arg);
}

/* --- runs --- */

void faults_each(bool (*run)(uint64_t nth), uint64_t at_least)
{
	uint64_t n = 1;

	while (run(n))
		n += suite_every();
	printf("# %lu calls, every %lu of them failed once\n", (unsigned long)n - 1,
		(unsigned long)suite_every());
	ck_assert_uint_gt(n, at_least);
}

void faults_check_leaks(uint64_t nth)
{
	ck_assert_msg(faults_live() == 0, "%lu (%s): %zu allocations leaked", (unsigned long)nth,
		faults_what(), faults_live());
}

unsigned int faults_descriptors(void)
{
	DIR *fds = opendir("/proc/self/fd");
	unsigned int nr = 0;

	ck_assert_ptr_nonnull(fds);
	while (readdir(fds))
		nr++;
	closedir(fds);
	return nr;
}

void faults_check_descriptors(uint64_t nth, unsigned int before)
{
	ck_assert_msg(faults_descriptors() == before, "%lu (%s): descriptors leaked",
		(unsigned long)nth, faults_what());
}
