"""A fresh Debian machine in namespaces of this one, with systemd as its first process, and without a network.

Needs root, debootstrap and overlayfs. The base system and downloaded packages are kept in `target/machine`.
"""

import re
import shutil
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target/machine"
RELEASE = "bookworm"
# systemd counts the processes of its services by cgroups. Here it gets some of its own.
CGROUPS = Path("/sys/fs/cgroup/unified") if Path("/sys/fs/cgroup/unified").exists() else Path("/sys/fs/cgroup")

# Runs in the namespaces, until systemd replaces it. $1: the root folder.
BOOT = r"""
set -e
mount --make-rprivate /
mount -t proc proc "$1/proc"
mount -t sysfs -o ro sysfs "$1/sys"
mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$1/run"
mount -t tmpfs -o mode=755 tmpfs "$1/dev"
for device in null zero full random urandom tty; do
  touch "$1/dev/$device"
  mount --bind "/dev/$device" "$1/dev/$device"
done
mkdir "$1/dev/pts" "$1/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
ln -s pts/ptmx "$1/dev/ptmx"
ln -s /proc/self/fd "$1/dev/fd"
hostname fresh-machine
cd "$1"
mkdir -p .outside
pivot_root . .outside
umount -l /.outside
# systemd passes credentials to services by mounts that must propagate.
mount --make-rshared /
exec env -i container=namespaces PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
"""


def run(*command, **options):
    """Runs a command on this machine. Its output is only shown if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} exited with {done.returncode}:\n{done.stdout}")
    return done.stdout


def base_system():
    """Returns the folder with Debian's smallest system and systemd. Builds it once."""
    base = FOLDER / "base"
    if not base.exists():
        unfinished = FOLDER / "base.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        run("debootstrap", "--variant=minbase", "--include=ca-certificates,curl,dbus,systemd,systemd-sysv", RELEASE, unfinished)
        unfinished.rename(base)
    return base


class Machine:
    """A machine. It exists until `stop`."""

    def __init__(self, name, packages=()):
        """Boots a machine. `packages` are downloaded before, so that they can be installed without a network."""
        base = base_system()
        if packages:
            shutil.copy("/etc/resolv.conf", base / "etc/resolv.conf")
            # Debian removes a package when there is a newer one, so the lists must not be those of the day when the base was built.
            run("chroot", base, "apt-get", "update")
            run("chroot", base, "apt-get", "install", "--download-only", "--yes", "--no-install-recommends", *packages)
        self.folder, self.process = FOLDER / name, None
        self.cgroup = CGROUPS / f"boxoffice-{name}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.root = self.folder / "root"
        for part in ("root", "changes", "work"):
            (self.folder / part).mkdir(parents=True)
        layers = f"lowerdir={base},upperdir={self.folder}/changes,workdir={self.folder}/work"
        try:
            run("mount", "-t", "overlay", "overlay", "-o", layers, self.root)
            self.cgroup.mkdir(exist_ok=True)
            enter = f'echo $$ > {self.cgroup}/cgroup.procs; exec unshare -m -p -f -C -u -i -n --kill-child bash -c "$2" boot "$1"'
            self.process = subprocess.Popen(
                ["bash", "-c", enter, "enter", self.root, BOOT],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.folder / "boot.log", "w"),
            )
            self.wait("systemctl is-system-running --wait | grep -qE 'running|degraded'", "systemd is running")
        except BaseException:
            self.stop()
            raise

    def shell(self, script, check=True, timeout=600):
        """Runs a script of bash as root, and returns its output."""
        command = ["nsenter", "-a", "-t", self.first_process(), "env", "-i", "HOME=/root", "LANG=C.UTF-8"]
        command += ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise RuntimeError(f"on the machine, this exited with {done.returncode}:\n{script}\n\n{done.stdout}")
        return done.stdout.strip()

    def first_process(self):
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        if not children:
            raise RuntimeError(f"the machine has not booted:\n{(self.folder / 'boot.log').read_text()}")
        return children[0]

    def wait(self, script, what, seconds=60):
        """Waits until a script succeeds, which may take so long itself."""
        end = time.monotonic() + seconds
        while True:
            try:
                return self.shell(script, timeout=seconds)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                if time.monotonic() > end:
                    raise RuntimeError(f"not within {seconds} s: {what}; {error}") from None
                time.sleep(0.2)

    def write(self, path, text, mode=0o644):
        """Writes a file."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def copy_in(self, file):
        """Copies a file to /root."""
        shutil.copy(file, self.root / "root")

    def stop(self):
        """Kills all processes of the machine and removes it, also one that has not booted."""
        if self.process:
            self.process.kill()
            self.process.wait()
        events, end = self.cgroup / "cgroup.events", time.monotonic() + 10
        # The kernel ends the processes in its own time.
        while events.exists() and events.read_text().startswith("populated 1") and time.monotonic() < end:
            time.sleep(0.1)
        if self.root.is_mount():
            run("umount", self.root)
        if self.cgroup.exists():
            for folder in sorted(self.cgroup.rglob("*/"), reverse=True):
                folder.rmdir()
            self.cgroup.rmdir()
        shutil.rmtree(self.folder)


def code_blocks(document, heading, language="sh"):
    """Returns the code blocks below a heading of a Markdown document, up to the next heading of the same level."""
    level = re.match("#+", heading).group()
    lines, section, is_inside = (ROOT / document).read_text().splitlines(), [], False
    fenced = False
    for line in lines:
        fenced ^= line.startswith("```")
        if not fenced and re.match("#+ ", line) and len(re.match("#+", line).group()) <= len(level):
            is_inside = line == heading
        elif is_inside:
            section.append(line)
    assert section, f"{document} has no section `{heading}`"
    return re.findall(rf"^```{language}\n(.*?)^```", "\n".join(section) + "\n", re.S | re.M)
