# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What the guests boot: Debian's cloud kernel, unpacked and never installed, and an initramfs of
# busybox, the virtio modules and our workload. Both are kept in $CACHE. Needs lib.sh.

# In the order in which they are loaded.
IMAGE_MODULES="virtio/virtio_ring virtio/virtio virtio/virtio_pci_legacy_dev
	virtio/virtio_pci_modern_dev virtio/virtio_pci virtio/virtio_balloon block/virtio_blk
	char/virtio_console"
# Loaded by the guest that swaps.
IMAGE_SWAP_MODULES="../mm/zsmalloc ../crypto/lzo-rle block/zram/zram"

# image_kernel: prints the folder of an unpacked kernel package; fetches it where there is none.
image_kernel() {
	local kernel
	kernel=$(find "$CACHE/kernel" -mindepth 1 -maxdepth 1 -name 'linux-image-*' 2>/dev/null | sort -V | tail -n 1)
	if [ -z "$kernel" ]; then
		mkdir -p "$CACHE/kernel"
		kernel=$(image_fetch_kernel) || return 1
	fi
	echo "$kernel"
}

image_kernel_name() {
	apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1
}

image_fetch_kernel() {
	local name work
	name=$(image_kernel_name)
	work=$(mktemp -d "$CACHE/kernel/.new.XXXXXX")
	if [ -z "$name" ] || ! image_download "$name" "$work"; then
		apt_update >&2
		name=$(image_kernel_name)
		[ -n "$name" ] || die "no Debian cloud kernel in the package lists"
		image_download "$name" "$work" || die "could not fetch $name: see $CACHE/apt.log"
	fi
	dpkg -x "$work"/*.deb "$work/unpacked"
	mv -T "$work/unpacked" "$CACHE/kernel/$name" 2>/dev/null || true # somebody else was faster
	rm -rf "$work"
	echo "$CACHE/kernel/$name"
}

image_download() {
	warn "fetching $1"
	(cd "$2" && apt-get download -q -o APT::Sandbox::User=root "$1") >>"$CACHE/apt.log" 2>&1
}

# image_package NAME: prints the folder of that package, unpacked; fetches it where there is none.
image_package() {
	local dir=$CACHE/$1 work
	if [ ! -d "$dir" ]; then
		work=$(mktemp -d "$CACHE/.package.XXXXXX")
		if ! image_download "$1" "$work"; then
			apt_update >&2
			image_download "$1" "$work" || die "could not fetch $1: see $CACHE/apt.log"
		fi
		dpkg -x "$work"/*.deb "$work/unpacked"
		mv -T "$work/unpacked" "$dir" 2>/dev/null || true # somebody else was faster
		rm -rf "$work"
	fi
	echo "$dir"
}

# image_tool SOURCE TARGET FLAGS...: compiles one of our small C programs unless it is up to date.
image_tool() {
	local source=$1 target=$2
	shift 2
	[ "$target" -nt "$source" ] && return 0
	mkdir -p "${target%/*}"
	gcc -O2 -Wall -Wextra "$@" -o "$target.$$" "$source"
	mv "$target.$$" "$target"
}

# image_key: another one where anything is that an initramfs is made of: of the folders that the agent
# is compiled from, all.
image_key() {
	local here=$ROOT/tests/lab
	cat "$here/guest.c" "$here/guest-init" "$here/image.sh" "$ROOT"/{guest-agent,common,policy}/*.[ch] /bin/busybox |
		sha256sum | cut -c1-12
}

# image_initramfs KERNEL: prints the path of an initramfs for that kernel.
image_initramfs() {
	local kernel=$1 out
	out=$CACHE/initramfs-${kernel##*/}-$(image_key).gz
	if [ ! -f "$out" ]; then
		image_build_initramfs "$kernel" "$out"
	fi
	echo "$out"
}

# image_agent TARGET: the agent as a guest has it, static.
image_agent() {
	local work
	work=$(mktemp -d "$CACHE/.agent.XXXXXX")
	echo '#define PACKAGE_VERSION "lab"' >"$work/config.h"
	gcc -std=gnu11 -D_GNU_SOURCE -Os -static -I"$work" -I"$ROOT" -Wno-format-truncation -o "$1" \
		"$ROOT"/guest-agent/*.c "$ROOT"/common/protocol.c "$ROOT"/policy/{batch,workingset}.c
	strip "$1"
	rm -rf "$work"
}

image_build_initramfs() {
	local kernel=$1 out=$2 here=$ROOT/tests/lab tree drivers m
	tree=$(mktemp -d "$CACHE/.initramfs.XXXXXX")
	drivers=$(echo "$kernel"/lib/modules/*/kernel/drivers)
	mkdir -p "$tree"/{bin,dev,proc,sys,run,modules}
	cp /bin/busybox "$tree/bin/busybox"
	cp "$here/guest-init" "$tree/init"
	image_tool "$here/guest.c" "$tree/bin/guest" -static
	image_agent "$tree/bin/ballast-agent"
	for m in $IMAGE_MODULES; do
		cp "$drivers/$m.ko" "$tree/modules/"
		echo "${m##*/}" >>"$tree/modules/order"
	done
	for m in $IMAGE_SWAP_MODULES; do
		cp "$drivers/$m.ko" "$tree/modules/"
		echo "${m##*/}" >>"$tree/modules/swap"
	done
	(cd "$tree" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$out.$$"
	mv "$out.$$" "$out"
	rm -rf "$tree"
}

# image_with_qga INITRAMFS: prints the path of the same with QEMU's guest agent as Debian has it, and
# the libraries that it needs: this machine's.
image_with_qga() {
	local out=${1%.gz}-qga.gz package tree library
	if [ ! -f "$out" ]; then
		package=$(image_package qemu-guest-agent)
		tree=$(mktemp -d "$CACHE/.initramfs.XXXXXX")
		mkdir "$tree/bin"
		cp "$package/usr/sbin/qemu-ga" "$tree/bin/"
		ldd "$tree/bin/qemu-ga" | grep -o '/[^ ]*' | while read -r library; do
			mkdir -p "$tree${library%/*}"
			cp -L "$library" "$tree$library"
		done
		# The kernel unpacks one behind the other.
		(cat "$1" && cd "$tree" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$out.$$"
		mv "$out.$$" "$out"
		rm -rf "$tree"
	fi
	echo "$out"
}
