// Preloaded into a server or a command: a disk with troubles, each for as long as the file exists
// that its variable names.
//   DISK_SYNC_FAILS_WHEN   nothing can be synced: EIO
//   DISK_SYNC_WAITS_WHEN   a sync does not return
//   DISK_IS_FULL_WHEN      no file can grow: ENOSPC
// And always:
//   DISK_IS_FULL_BELOW     no file below this directory can grow: ENOSPC
// And once, at one call of many:
//   DISK_CALLS             a file in which calls are counted, over all processes that share it
//                          (struct calls; what it is filled with at first is zeros)
//   DISK_CALLS_BELOW       the directory whose files count: each write, sync, truncation, rename,
//                          link and unlink of one
//   DISK_TROUBLE           what happens: kill (of a write, half is done before), EIO, sync (EIO of a
//                          sync), ENOSPC (of a write that makes a file grow), EINTR (of a
//                          write), EINTR-sync (of a sync or truncation), short (of a write, half is
//                          done)
//   DISK_TROUBLE_AT        to the first call from this number on that it can happen to
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// --- Troubles that last -------------------------------------------------------------------------

static int happens(const char* trouble) {
  const char* path = getenv(trouble);
  return path != NULL && access(path, F_OK) == 0;
}

static int sync_fails(void) {
  while (happens("DISK_SYNC_WAITS_WHEN")) usleep(1000);
  if (!happens("DISK_SYNC_FAILS_WHEN")) return 0;
  errno = EIO;
  return 1;
}

static int path_of(int fd, char* path, size_t size) {
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, size - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  return 1;
}

static int is_below(const char* folder, const char* path) {
  return folder != NULL && strlen(path) > strlen(folder) &&
         strncmp(path, folder, strlen(folder)) == 0;
}

static int is_open_below(const char* folder, int fd) {
  char path[4096];
  return folder != NULL && path_of(fd, path, sizeof(path)) && is_below(folder, path);
}

static int grows(int fd, off_t end) {
  struct stat status;
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && end > status.st_size;
}

// Files only: sockets, and the log on stderr, do not live on this disk. What a file has already been
// given stays writable.
static int is_full(int fd, off_t end) {
  if (fd <= STDERR_FILENO) return 0;
  if (!happens("DISK_IS_FULL_WHEN") && !is_open_below(getenv("DISK_IS_FULL_BELOW"), fd)) return 0;
  if (!grows(fd, end)) return 0;
  errno = ENOSPC;
  return 1;
}

// --- One trouble at one call --------------------------------------------------------------------

enum { KINDS_KEPT = 65536, PATH_KEPT = 1024 };

struct calls {
  _Atomic uint64_t count;
  _Atomic uint64_t troubles;    // 1 once it has happened
  _Atomic uint64_t trouble_ns;  // when, by the monotonic clock
  char trouble_path[PATH_KEPT];  // where
  // What each call was: w(rite), d (a write that is synced), s(ync), t(runcation), n(ame)
  _Atomic char kinds[KINDS_KEPT];
};

static struct calls* calls;
static const char* calls_below;
static const char* trouble;
static uint64_t trouble_at;

__attribute__((constructor)) static void map_calls(void) {
  const char* path = getenv("DISK_CALLS");
  calls_below = getenv("DISK_CALLS_BELOW");
  if (path == NULL || calls_below == NULL) return;
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) abort();
  void* mapped = mmap(NULL, sizeof(struct calls), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) abort();
  close(fd);
  calls = mapped;
  trouble = getenv("DISK_TROUBLE");
  const char* at = getenv("DISK_TROUBLE_AT");
  trouble_at = at == NULL ? 0 : strtoull(at, NULL, 10);
}

static int trouble_is(const char* name) { return strcmp(trouble, name) == 0; }

// Whether this call has its trouble now. `can_happen` says which of them it can have.
static int is_hit(char kind, const char* path, const char* const* can_happen) {
  const uint64_t number = atomic_fetch_add(&calls->count, 1) + 1;
  if (number <= KINDS_KEPT) atomic_store(&calls->kinds[number - 1], kind);
  if (trouble == NULL || trouble_at == 0 || number < trouble_at) return 0;
  while (*can_happen != NULL && !trouble_is(*can_happen)) ++can_happen;
  if (*can_happen == NULL || atomic_exchange(&calls->troubles, 1) != 0) return 0;
  snprintf(calls->trouble_path, PATH_KEPT, "%s", path);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  atomic_store(&calls->trouble_ns, (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec);
  return 1;
}

// Whether calls for this file count, and where it is.
static int counts(int fd, char* path) {
  if (calls == NULL || fd <= STDERR_FILENO || !path_of(fd, path, PATH_KEPT)) return 0;
  // RocksDB's diary is no data.
  return strncmp(path, calls_below, strlen(calls_below)) == 0 && strstr(path, "/LOG") == NULL;
}

static int counts_name(int directory, const char* name, char* path) {
  if (calls == NULL) return 0;
  path[0] = '\0';
  if (name[0] != '/' && directory != AT_FDCWD && !path_of(directory, path, PATH_KEPT / 2)) return 0;
  const size_t length = strlen(path);
  snprintf(path + length, PATH_KEPT - length, "%s%s", length > 0 ? "/" : "", name);
  return is_below(calls_below, path) && strstr(path, "/LOG") == NULL;
}

static void die(void) { kill(getpid(), SIGKILL); }

static int fail_with(int number) {
  errno = number;
  return 1;
}

// Of a call that is no write: whether it fails.
static int call_fails(char kind, const char* path) {
  static const char* const for_syncs[] = {"kill", "EIO", "EINTR-sync", "sync", NULL};
  static const char* const for_truncations[] = {"kill", "EIO", "EINTR-sync", NULL};
  static const char* const for_names[] = {"kill", "EIO", NULL};
  if (!is_hit(kind, path, kind == 's' ? for_syncs : kind == 't' ? for_truncations : for_names)) return 0;
  if (trouble_is("kill")) die();
  return fail_with(trouble_is("EINTR-sync") ? EINTR : EIO);
}

static int fd_call_fails(int fd, char kind) {
  char path[PATH_KEPT];
  return counts(fd, path) && call_fails(kind, path);
}

static int name_call_fails(int directory, const char* name) {
  char path[PATH_KEPT];
  return counts_name(directory, name, path) && call_fails('n', path);
}

// What becomes of a write: all of it (0), nothing (-1, with errno), or only so many bytes of it.
static ssize_t write_fate(int fd, size_t bytes, off_t end, int synced) {
  char path[PATH_KEPT];
  if (!counts(fd, path)) return 0;
  // Past the page cache only whole blocks can be written.
  const size_t unit = (fcntl(fd, F_GETFL) & O_DIRECT) ? 4096 : 1;
  const size_t half = bytes / 2 / unit * unit;
  const char* can_happen[] = {"kill", "EIO", "EINTR", NULL, NULL, NULL, NULL};
  int last = 3;
  if (synced) can_happen[last++] = "sync";
  if (half > 0) can_happen[last++] = "short";
  if (grows(fd, end)) can_happen[last++] = "ENOSPC";
  if (!is_hit(synced ? 'd' : 'w', path, can_happen)) return 0;
  if (trouble_is("short")) return (ssize_t)half;
  if (trouble_is("kill")) {
    if (half == 0) die();
    return (ssize_t)half;
  }
  fail_with(trouble_is("ENOSPC") ? ENOSPC : trouble_is("EINTR") ? EINTR : EIO);
  return -1;
}

static ssize_t end_write(ssize_t written) {
  if (trouble_is("kill")) die();
  return written;
}

// --- The calls ----------------------------------------------------------------------------------

static off_t size_of(const struct iovec* parts, int count) {
  off_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
  return bytes;
}

// The first bytes of these parts, as parts.
static int cut(const struct iovec* parts, int count, size_t bytes, struct iovec* into) {
  int used = 0;
  for (int i = 0; i < count && bytes > 0; ++i) {
    into[used] = parts[i];
    if (into[used].iov_len > bytes) into[used].iov_len = bytes;
    bytes -= into[used++].iov_len;
  }
  return used;
}

int fsync(int fd) { return sync_fails() || fd_call_fails(fd, 's') ? -1 : REAL(fsync)(fd); }

int fdatasync(int fd) { return sync_fails() || fd_call_fails(fd, 's') ? -1 : REAL(fdatasync)(fd); }

int sync_file_range(int fd, off_t offset, off_t bytes, unsigned int flags) {
  return sync_fails() ? -1 : REAL(sync_file_range)(fd, offset, bytes, flags);
}

int ftruncate(int fd, off_t size) { return fd_call_fails(fd, 't') ? -1 : REAL(ftruncate)(fd, size); }

int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

ssize_t write(int fd, const void* data, size_t bytes) {
  const off_t at = fd <= STDERR_FILENO ? 0 : lseek(fd, 0, SEEK_CUR);
  if (is_full(fd, at + bytes)) return -1;
  const ssize_t fate = write_fate(fd, bytes, at + bytes, 0);
  if (fate < 0) return -1;
  return fate == 0 ? REAL(write)(fd, data, bytes) : end_write(REAL(write)(fd, data, fate));
}

ssize_t pwrite64(int fd, const void* data, size_t bytes, off_t offset) {
  if (is_full(fd, offset + bytes)) return -1;
  const ssize_t fate = write_fate(fd, bytes, offset + bytes, 0);
  if (fate < 0) return -1;
  return fate == 0 ? REAL(pwrite64)(fd, data, bytes, offset)
                   : end_write(REAL(pwrite64)(fd, data, fate, offset));
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  return pwrite64(fd, data, bytes, offset);
}

ssize_t pwritev64v2(int fd, const struct iovec* parts, int count, off_t offset, int flags) {
  const off_t end = offset + size_of(parts, count);
  if (is_full(fd, end)) return -1;
  if ((flags & RWF_DSYNC) && sync_fails()) return -1;
  const ssize_t fate = write_fate(fd, end - offset, end, (flags & RWF_DSYNC) != 0);
  if (fate < 0) return -1;
  if (fate == 0) return REAL(pwritev64v2)(fd, parts, count, offset, flags);
  struct iovec some[count];
  return end_write(REAL(pwritev64v2)(fd, some, cut(parts, count, fate, some), offset, flags));
}

ssize_t pwritev2(int fd, const struct iovec* parts, int count, off_t offset, int flags) {
  return pwritev64v2(fd, parts, count, offset, flags);
}

ssize_t pwritev64(int fd, const struct iovec* parts, int count, off_t offset) {
  return pwritev64v2(fd, parts, count, offset, 0);
}

ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t offset) {
  return pwritev64(fd, parts, count, offset);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  const off_t at = fd <= STDERR_FILENO ? 0 : lseek(fd, 0, SEEK_CUR);
  const off_t end = at + size_of(parts, count);
  if (is_full(fd, end)) return -1;
  const ssize_t fate = write_fate(fd, end - at, end, 0);
  if (fate < 0) return -1;
  if (fate == 0) return REAL(writev)(fd, parts, count);
  struct iovec some[count];
  return end_write(REAL(writev)(fd, some, cut(parts, count, fate, some)));
}

int rename(const char* from, const char* to) {
  return name_call_fails(AT_FDCWD, to) ? -1 : REAL(rename)(from, to);
}

int renameat(int old_directory, const char* from, int directory, const char* to) {
  return name_call_fails(directory, to) ? -1 : REAL(renameat)(old_directory, from, directory, to);
}

int renameat2(int old_directory, const char* from, int directory, const char* to,
              unsigned int flags) {
  return name_call_fails(directory, to)
             ? -1
             : REAL(renameat2)(old_directory, from, directory, to, flags);
}

int link(const char* from, const char* to) {
  return name_call_fails(AT_FDCWD, to) ? -1 : REAL(link)(from, to);
}

int linkat(int old_directory, const char* from, int directory, const char* to, int flags) {
  return name_call_fails(directory, to) ? -1
                                        : REAL(linkat)(old_directory, from, directory, to, flags);
}

int unlink(const char* path) { return name_call_fails(AT_FDCWD, path) ? -1 : REAL(unlink)(path); }

int unlinkat(int directory, const char* path, int flags) {
  return name_call_fails(directory, path) ? -1 : REAL(unlinkat)(directory, path, flags);
}

int remove(const char* path) { return name_call_fails(AT_FDCWD, path) ? -1 : REAL(remove)(path); }
