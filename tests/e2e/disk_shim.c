// Preloaded into the server: a disk with troubles, each for as long as the file exists that its
// variable names.
//   DISK_SYNC_FAILS_WHEN   nothing can be synced: EIO
//   DISK_SYNC_WAITS_WHEN   a sync does not return
//   DISK_IS_FULL_WHEN      no file can grow: ENOSPC
// And always:
//   DISK_IS_FULL_BELOW     no file below this directory can grow: ENOSPC
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int is_below(const char* folder, int fd) {
  char link[64], path[4096];
  if (folder == NULL) return 0;
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof(path));
  return length > 0 && (size_t)length > strlen(folder) &&
         strncmp(path, folder, strlen(folder)) == 0;
}

// Files only: sockets, and the log on stderr, do not live on this disk. What a file has already been
// given stays writable.
static int is_full(int fd, off_t end) {
  struct stat status;
  if (fd <= STDERR_FILENO) return 0;
  if (!happens("DISK_IS_FULL_WHEN") && !is_below(getenv("DISK_IS_FULL_BELOW"), fd)) return 0;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || end <= status.st_size) return 0;
  errno = ENOSPC;
  return 1;
}

static off_t size_of(const struct iovec* parts, int count) {
  off_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
  return bytes;
}

int fsync(int fd) { return sync_fails() ? -1 : REAL(fsync)(fd); }

int fdatasync(int fd) { return sync_fails() ? -1 : REAL(fdatasync)(fd); }

int sync_file_range(int fd, off_t offset, off_t bytes, unsigned int flags) {
  return sync_fails() ? -1 : REAL(sync_file_range)(fd, offset, bytes, flags);
}

ssize_t write(int fd, const void* data, size_t bytes) {
  const off_t at = fd <= STDERR_FILENO ? 0 : lseek(fd, 0, SEEK_CUR);
  return is_full(fd, at + bytes) ? -1 : REAL(write)(fd, data, bytes);
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  return is_full(fd, offset + bytes) ? -1 : REAL(pwrite)(fd, data, bytes, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t bytes, off_t offset) {
  return is_full(fd, offset + bytes) ? -1 : REAL(pwrite64)(fd, data, bytes, offset);
}

ssize_t pwritev64(int fd, const struct iovec* parts, int count, off_t offset) {
  return is_full(fd, offset + size_of(parts, count)) ? -1
                                                     : REAL(pwritev64)(fd, parts, count, offset);
}

ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t offset) {
  return pwritev64(fd, parts, count, offset);
}

ssize_t pwritev64v2(int fd, const struct iovec* parts, int count, off_t offset, int flags) {
  if (is_full(fd, offset + size_of(parts, count))) return -1;
  if ((flags & RWF_DSYNC) && sync_fails()) return -1;
  return REAL(pwritev64v2)(fd, parts, count, offset, flags);
}

ssize_t pwritev2(int fd, const struct iovec* parts, int count, off_t offset, int flags) {
  return pwritev64v2(fd, parts, count, offset, flags);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  const off_t at = fd <= STDERR_FILENO ? 0 : lseek(fd, 0, SEEK_CUR);
  return is_full(fd, at + size_of(parts, count)) ? -1 : REAL(writev)(fd, parts, count);
}
