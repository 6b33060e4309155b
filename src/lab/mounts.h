/* The directories that every host, and every run on a host, has for itself. */
#ifndef PALMETTE_LAB_MOUNTS_H
#define PALMETTE_LAB_MOUNTS_H

extern const char* const boot_id_path;

/* Where temporary files of a host go (TMPDIR). The rest of the file system, /tmp included, is shared with the
 * machine. */
extern const char* const host_tmpdir;

/* Mounts a new /proc for the caller's PID namespace and an empty /dev/shm with `host_tmpdir` in it. The caller must be
 * in a mount namespace of its own. Returns NULL, or what went wrong (errno says why). */
const char* mount_private_directories(void);

#endif
