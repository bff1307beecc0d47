/*
 * Stands between a Cairn process and the system (LD_PRELOAD), for tests of what no process can see of itself: in which
 * order the store reaches the disk and the answer its client, what a disk that fails or loses power leaves, and who is
 * spoken to.
 *
 * DISK_SHIM names a directory. Each file in it that exists switches one thing on:
 *
 *   trace       one line is appended for each call that matters, in the order in which they took effect:
 *                 data|meta|sync       a write to the store, one that is flushed by itself (O_DSYNC), a flush: done
 *                 pages                LMDB has asked for the size of pages, see below
 *                 answer STATUS        the first bytes of an HTTP response are about to be sent
 *                 connect|send|resolve WHERE  somebody is about to be called, written to, or looked up
 *   slow        a flush, and a write that is flushed by itself, takes 20 ms longer
 *   faults      lines "KIND ERRNO [once]" with KIND data, meta, sync or space: such calls fail; `once` removes the file
 *               first, and with ERRNO 0 they wait until it is removed; a question for space is answered that there is none
 *   pages       for LMDB the pages of the system have 16 KiB, as on Apple silicon
 *   disk        what the disk holds of data.mdb: only what has been flushed
 *   cache       with it: what was written and not flushed yet, as records of { offset, length } and the bytes
 *
 * `disk-shim.ts` compiles this, and plays the power cut.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/* The function of the same name that this file hides. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

enum kind { OTHER, DATA, META, SYNC, SPACE };
static const char *const KINDS[] = {"other", "data", "meta", "sync", "space"};

/* Opens a file of the shim's directory, if it is there. */
static int open_own(const char *name, int flags) {
  const char *directory = getenv("DISK_SHIM");
  char path[PATH_MAX];
  if (directory == NULL) return -1;
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return open(path, flags | O_CLOEXEC, 0600);
}

/* The same for what another thread, or a command beside the server, may be changing: theirs alone until it is closed. */
static int open_locked(const char *name, int flags) {
  int fd = open_own(name, flags);
  if (fd >= 0) flock(fd, LOCK_EX);
  return fd;
}

static void trace(const char *what, const char *detail) {
  int saved = errno, fd = open_own("trace", O_WRONLY | O_APPEND);
  if (fd >= 0) {
    dprintf(fd, "%s%s%s\n", what, *detail == 0 ? "" : " ", detail);
    close(fd);
  }
  errno = saved;
}

static void take_long_if_slow(void) {
  int fd = open_own("slow", O_RDONLY);
  if (fd >= 0) close(fd), usleep(20000);
}

static enum kind kind_of(int fd) {
  static const char STORE[] = "/store/data.mdb";
  const size_t suffix = sizeof STORE - 1;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path);
  if (length < (ssize_t)suffix || memcmp(path + length - suffix, STORE, suffix) != 0) return OTHER;
  return (fcntl(fd, F_GETFL) & O_DSYNC) != 0 ? META : DATA;
}

/* The error that a call of this kind is to end with, or 0. */
static int fault_of(enum kind kind) {
  int fd = open_own("faults", O_RDONLY), error = 0;
  if (fd < 0) return 0;
  FILE *file = fdopen(fd, "r");
  char line[128], name[16], once[16];
  while (error == 0 && fgets(line, sizeof line, file) != NULL) {
    int number, fields = sscanf(line, "%15s %d %15s", name, &number, once);
    if (fields < 2 || strcmp(name, KINDS[kind]) != 0) continue;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/faults", getenv("DISK_SHIM"));
    while (number == 0 && access(path, F_OK) == 0) usleep(10000);
    /* Who removes it is the one that fails. */
    if (fields < 3 || unlink(path) == 0) error = number;
  }
  fclose(file);
  return error;
}

/* Notes what a write has left in the system's cache; one through O_DSYNC is on the disk by now. */
static void written(enum kind kind, const struct iovec *pieces, int count, off_t offset) {
  int disk = open_locked("disk", O_WRONLY);
  if (disk >= 0) {
    int cache = open_own("cache", O_WRONLY | O_APPEND | O_CREAT);
    for (int i = 0; i < count; i++) {
      if (kind == META) {
        REAL(pwrite)(disk, pieces[i].iov_base, pieces[i].iov_len, offset);
      } else {
        uint64_t record[2] = {(uint64_t)offset, pieces[i].iov_len};
        REAL(write)(cache, record, sizeof record);
        REAL(write)(cache, pieces[i].iov_base, pieces[i].iov_len);
      }
      offset += pieces[i].iov_len;
    }
    close(cache);
    close(disk);
  }
  trace(KINDS[kind], "");
}

/* Brings what is in the cache to the disk. */
static void flushed(void) {
  int disk = open_locked("disk", O_WRONLY), cache = open_own("cache", O_RDWR);
  uint64_t record[2];
  while (disk >= 0 && cache >= 0 && read(cache, record, sizeof record) == sizeof record) {
    char *bytes = malloc(record[1]);
    if (read(cache, bytes, record[1]) == (ssize_t)record[1]) REAL(pwrite)(disk, bytes, record[1], record[0]);
    free(bytes);
  }
  if (cache >= 0) ftruncate(cache, 0), close(cache);
  if (disk >= 0) close(disk);
  trace(KINDS[SYNC], "");
}

static void about_to_send(int fd, const void *bytes, size_t length) {
  struct stat status;
  if (length < 12 || memcmp(bytes, "HTTP/1.1 ", 9) != 0 || fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  char code[4] = {0};
  memcpy(code, (const char *)bytes + 9, 3);
  trace("answer", code);
}

static void about_to_reach(const char *how, const struct sockaddr *address, socklen_t length) {
  char where[INET6_ADDRSTRLEN] = "", text[128];
  if (address == NULL || length < sizeof(sa_family_t)) return;
  if (address->sa_family == AF_UNIX) {
    snprintf(text, sizeof text, "unix");
  } else if (address->sa_family == AF_INET) {
    const struct sockaddr_in *inet = (const struct sockaddr_in *)address;
    snprintf(text, sizeof text, "%s %d", inet_ntop(AF_INET, &inet->sin_addr, where, sizeof where), ntohs(inet->sin_port));
  } else if (address->sa_family == AF_INET6) {
    const struct sockaddr_in6 *inet = (const struct sockaddr_in6 *)address;
    snprintf(text, sizeof text, "%s %d", inet_ntop(AF_INET6, &inet->sin6_addr, where, sizeof where), ntohs(inet->sin6_port));
  } else {
    snprintf(text, sizeof text, "family %d", address->sa_family);
  }
  trace(how, text);
}

long sysconf(int name) {
  Dl_info caller;
  if (name == _SC_PAGESIZE && dladdr(__builtin_return_address(0), &caller) != 0 && strstr(caller.dli_fname, "/lmdb-") != NULL) {
    int fd = open_own("pages", O_RDONLY);
    if (fd >= 0) return close(fd), trace("pages", ""), 16384;
  }
  return REAL(sysconf)(name);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
  enum kind kind = kind_of(fd);
  int fault = kind == OTHER ? 0 : fault_of(kind);
  if (kind == META) take_long_if_slow();
  /* What could not be brought to the disk is in the system's cache all the same. */
  ssize_t count = fault != 0 && kind == DATA ? -1 : REAL(pwrite)(fd, bytes, length, offset);
  if (kind != OTHER && count > 0) written(fault == 0 ? kind : DATA, &(struct iovec){(void *)bytes, count}, 1, offset);
  return fault == 0 ? count : (errno = fault, -1);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) { return pwrite(fd, bytes, length, offset); }

ssize_t writev(int fd, const struct iovec *pieces, int count) {
  if (count > 0) about_to_send(fd, pieces[0].iov_base, pieces[0].iov_len);
  enum kind kind = kind_of(fd);
  if (kind == OTHER) return REAL(writev)(fd, pieces, count);
  int fault = fault_of(kind);
  if (fault != 0) return errno = fault, -1;
  off_t offset = lseek(fd, 0, SEEK_CUR);
  ssize_t length = REAL(writev)(fd, pieces, count);
  if (length > 0) written(kind, pieces, count, offset);
  return length;
}

int fdatasync(int fd) {
  if (kind_of(fd) == OTHER) return REAL(fdatasync)(fd);
  int fault = fault_of(SYNC);
  if (fault != 0) return errno = fault, -1;
  take_long_if_slow();
  int result = REAL(fdatasync)(fd);
  if (result == 0) flushed();
  return result;
}

int fsync(int fd) {
  int result = REAL(fsync)(fd);
  if (result == 0 && kind_of(fd) != OTHER) flushed();
  return result;
}

int statfs(const char *path, struct statfs *found) {
  int result = REAL(statfs)(path, found);
  if (result == 0 && fault_of(SPACE) != 0) found->f_bavail = 0;
  return result;
}

ssize_t write(int fd, const void *bytes, size_t length) {
  about_to_send(fd, bytes, length);
  return REAL(write)(fd, bytes, length);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags) {
  about_to_send(fd, bytes, length);
  return REAL(send)(fd, bytes, length, flags);
}

ssize_t sendto(int fd, const void *bytes, size_t length, int flags, const struct sockaddr *address, socklen_t size) {
  about_to_send(fd, bytes, length);
  about_to_reach("send", address, size);
  return REAL(sendto)(fd, bytes, length, flags, address, size);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  if (message->msg_iovlen > 0) about_to_send(fd, message->msg_iov[0].iov_base, message->msg_iov[0].iov_len);
  about_to_reach("send", message->msg_name, message->msg_namelen);
  return REAL(sendmsg)(fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags) {
  for (unsigned int i = 0; i < count; i++) about_to_reach("send", messages[i].msg_hdr.msg_name, messages[i].msg_hdr.msg_namelen);
  return REAL(sendmmsg)(fd, messages, count, flags);
}

int connect(int fd, const struct sockaddr *address, socklen_t length) {
  about_to_reach("connect", address, length);
  return REAL(connect)(fd, address, length);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
  trace("resolve", name == NULL ? "" : name);
  return REAL(getaddrinfo)(name, service, hints, found);
}
