// Preloaded into the server: a disk with troubles, each for as long as the file exists that its
// variable names.
//   DISK_SYNC_FAILS_WHEN   nothing can be synced: EIO
//   DISK_SYNC_WAITS_WHEN   a sync does not return
//   DISK_IS_FULL_WHEN      nothing can be written to files: ENOSPC
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

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

// Files only: sockets, and the log on stderr, do not live on this disk.
static int is_full(int fd) {
  struct stat status;
  if (fd <= STDERR_FILENO || !happens("DISK_IS_FULL_WHEN")) return 0;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  errno = ENOSPC;
  return 1;
}

int fsync(int fd) { return sync_fails() ? -1 : REAL(fsync)(fd); }

int fdatasync(int fd) { return sync_fails() ? -1 : REAL(fdatasync)(fd); }

int sync_file_range(int fd, off_t offset, off_t bytes, unsigned int flags) {
  return sync_fails() ? -1 : REAL(sync_file_range)(fd, offset, bytes, flags);
}

ssize_t write(int fd, const void* data, size_t bytes) {
  return is_full(fd) ? -1 : REAL(write)(fd, data, bytes);
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  return is_full(fd) ? -1 : REAL(pwrite)(fd, data, bytes, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t bytes, off_t offset) {
  return is_full(fd) ? -1 : REAL(pwrite64)(fd, data, bytes, offset);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  return is_full(fd) ? -1 : REAL(writev)(fd, parts, count);
}
