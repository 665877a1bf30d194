/* Takes the place of malloc: in threads other than the first, only so many allocations of each are
   granted once refuse_after(count) was called. For test_limits.py; glibc. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static volatile long granted = -1;
static __thread long seen;

void refuse_after(long count) { granted = count; }

static int is_refused(void) {
  if (granted < 0 || syscall(SYS_gettid) == getpid() || seen++ < granted) return 0;
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t n) { return is_refused() ? NULL : __libc_malloc(n); }
void *calloc(size_t k, size_t n) { return is_refused() ? NULL : __libc_calloc(k, n); }
void *realloc(void *p, size_t n) { return is_refused() ? NULL : __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { return is_refused() ? NULL : __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) {
  void *found = memalign(a, n);
  if (found) *p = found;
  return found ? 0 : ENOMEM;
}
