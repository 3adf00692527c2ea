# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# The Xen lab: Xen with a dom0 of Debian's packages in QEMU, and PV guests in it. Nothing of it is
# installed: packages are fetched by apt and unpacked into $CACHE/xen. dom0 is an initramfs with
# ballastd (a build without libvirt) and the cases of xen/. Needs lib.sh, image.sh, build.sh.
#
#   xen_image        makes what is booted; sets XEN_KERNEL and XEN_DIR
#   xen_boot DIR     boots it, with what dom0 says in DIR/results; true when it came to its end
#   xen_results DIR  what came of each case, those included of which nothing was said

XEN_PACKAGES="xen-hypervisor-4.17-amd64 xen-utils-4.17 xenstore-utils libyajl2 libxenmisc4.17
	libxencall1 libxendevicemodel1 libxenevtchn1 libxenforeignmemory1 libxengnttab1 libxenhypfs1
	libxenstore4 libxentoolcore1 libxentoollog1"
# The longest that a boot with all its cases may take.
XEN_SECONDS=${XEN_SECONDS:-420}

# xen_packages: prints the folder of the unpacked packages; fetches them where they are not there.
xen_packages() {
	local kernel work names
	if [ ! -e "$CACHE/xen/root/.complete" ]; then
		mkdir -p "$CACHE/xen"
		work=$(mktemp -d "$CACHE/xen/.new.XXXXXX")
		kernel=$(xen_kernel_name)
		[ -n "$kernel" ] || { apt_update >&2 && kernel=$(xen_kernel_name); }
		[ -n "$kernel" ] || die "no Debian kernel in the package lists"
		read -ra names -d '' <<<"$XEN_PACKAGES $kernel" || true
		xen_download "$work" "${names[@]}" || {
			apt_update >&2
			xen_download "$work" "${names[@]}" || die "could not fetch Xen: see $CACHE/apt.log"
		}
		mkdir "$work/root"
		for names in "$work"/*.deb; do
			dpkg -x "$names" "$work/root"
		done
		xen_unpack_kernel "$(echo "$work"/root/boot/vmlinuz-*)" "$work/root/boot/vmlinux"
		touch "$work/root/.complete"
		mv -T "$work/root" "$CACHE/xen/root" 2>/dev/null || true # somebody else was faster
		rm -rf "$work"
	fi
	echo "$CACHE/xen/root"
}

# Not the cloud's: that has no support for a dom0.
xen_kernel_name() {
	apt-cache depends linux-image-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1
}

xen_download() {
	local dir=$1
	shift
	warn "fetching Xen and a kernel for its dom0"
	(cd "$dir" && apt-get download -q -o APT::Sandbox::User=root "$@") >>"$CACHE/apt.log" 2>&1
}

# The kernel itself, of a bzImage that is packed with xz: a guest is up in half the time.
xen_unpack_kernel() {
	local sectors offset length
	sectors=$(od -An -tu1 -j497 -N1 "$1" | tr -d ' ')
	offset=$(od -An -tu4 -j584 -N4 "$1" | tr -d ' ')
	length=$(od -An -tu4 -j588 -N4 "$1" | tr -d ' ')
	# The last four bytes say how long it is, and are not xz's.
	tail -c +$(((sectors + 1) * 512 + offset + 1)) "$1" | head -c $((length - 4)) | xz -dc >"$2"
}

# xen_programs DIR: ballast for dom0, and the lab's own programs.
xen_programs() {
	local dir="${ROOT:?}/build/dom0" here="$ROOT/tests/lab/xen"
	build_bootstrap
	if [ ! -e "$dir/config.status" ] || [ "$ROOT/configure" -nt "$dir/config.status" ]; then
		mkdir -p "$dir"
		(cd "$dir" && "$ROOT/configure" --quiet --enable-werror --without-libvirt CFLAGS="-O1 -g0" \
			>configure.log 2>&1) || die "configure failed: $dir/configure.log"
	fi
	make -s -C "$dir" -j "$(nproc)" ballastd ballastctl tests/contract/real_contract_xen
	gcc -O2 -Wall -Wextra -static -o "$dir/xen-guest" "$here/guest.c" -lxenstore -lxentoolcore
	gcc -O2 -Wall -Wextra -o "$dir/xen-probe" "$here/probe.c" -lxenctrl -lxenstore
}

# xen_image: needs nothing of root.
xen_image() {
	local root tree=$ROOT/build/dom0/tree here=$ROOT/tests/lab/xen build=$ROOT/build/dom0 bin file m
	root=$(xen_packages)
	xen_programs
	XEN_DIR=$build
	XEN_KERNEL=$(echo "$root"/boot/vmlinuz-*)
	rm -rf "$tree" "$build/guest"
	mkdir -p "$build/guest/dev" "$tree"/{bin,dev,proc,sys,run,tmp,etc/xen,lib64,lib/x86_64-linux-gnu,var/lib/xen,var/log/xen,boot,modules,cases}
	cp "$build/xen-guest" "$build/guest/init"
	image_agent "$build/guest/ballast-agent"
	cp "$root"/lib/modules/*/kernel/drivers/block/brd.ko "$build/guest/"
	(cd "$build/guest" && find . | busybox cpio -o -H newc 2>/dev/null) >"$tree/boot/guest.cpio"
	ln -s ../run "$tree/var/run"
	ln -s ../run/lock "$tree/var/lock"
	cp /bin/busybox "$tree/bin/"
	bin=("$root"/usr/lib/xen-4.17/bin/{xl,xenstored,xenconsoled,xen-init-dom0} "$root/usr/bin/xenstore"
		"$build/ballastd" "$build/ballastctl")
	cp "${bin[@]}" "$tree/bin/"
	cp "$build/tests/contract/real_contract_xen" "$tree/bin/contract-xen"
	cp "$build/xen-probe" "$tree/bin/probe"
	for m in ls read write exists rm list chmod; do
		ln -s xenstore "$tree/bin/xenstore-$m"
	done
	cp -L /lib/x86_64-linux-gnu/libgcc_s.so.1 "$tree/lib/x86_64-linux-gnu/" # xl's threads end with it
	for file in $(xen_libraries "$root" "${bin[@]}" "$build/xen-probe" "$tree/bin/contract-xen"); do
		case $file in
		/lib64/*) cp -L "$file" "$tree/lib64/" ;;
		*) cp -L "$file" "$tree/lib/x86_64-linux-gnu/" ;;
		esac
	done
	for m in drivers/xen/xen-privcmd drivers/xen/xenfs/xenfs drivers/xen/xen-evtchn \
		drivers/xen/xen-gntdev drivers/xen/xen-gntalloc; do
		cp "$root"/lib/modules/*/kernel/$m.ko "$tree/modules/"
	done
	: >"$tree/etc/xen/xl.conf"
	cp "$root/boot/vmlinux" "$tree/boot/vmlinux"
	cp "$here/dom0-init" "$tree/init"
	cp "$here"/*.sh "$tree/cases/"
	chmod +x "$tree/init"
	zcat "$root"/boot/xen-4.17-amd64.gz >"$build/xen"
	(cd "$tree" && find . | busybox cpio -o -H newc 2>/dev/null) >"$build/dom0.cpio"
}

# Those of the fetched packages come first, those of this machine otherwise.
xen_libraries() {
	local root=$1 file
	shift
	for file in "$@"; do
		LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu ldd "$file" |
			awk '$3 ~ /^\// { print $3 } $1 ~ /^\/lib64/ { print $1 }'
	done | sort -u
}

# xen_boot DIR: QEMU's status is 7 where dom0 came to its own end; a crash has another. Cases whose
# shell came to theirs end with 0 or 1.
xen_boot() {
	local dir=$1 status=0
	: >"$dir/results"
	# In our process group, so that it ends with us.
	timeout --foreground "$XEN_SECONDS" qemu-system-x86_64 -M pc -accel tcg -cpu qemu64 -smp 1 -m 2048 \
		-nodefaults -no-user-config -display none -no-reboot -monitor none \
		-serial "file:$dir/xen.log" -serial "file:$dir/results" \
		-device isa-debug-exit,iobase=0xf4,iosize=4 -kernel "$XEN_DIR/xen" \
		-append "dom0_mem=512M,max:512M com1=115200,8n1 console=com1 bootscrub=0 spec-ctrl=no" \
		-initrd "$XEN_KERNEL console=hvc0 rdinit=/init quiet mitigations=off,$XEN_DIR/dom0.cpio" \
		>"$dir/qemu.log" 2>&1 </dev/null || status=$?
	cat "$dir/results"
	[ $status = 7 ] && tr -d '\r' <"$dir/results" | grep -qx 'END [01]'
}

# xen_results DIR: "PASS|FAIL NAME" a line. A case of which nothing was said has failed.
xen_results() {
	local said name
	said=$(tr -d '\r' <"$1/results" | sed -n 's/^RESULT //p')
	[ -z "$said" ] || echo "$said"
	while read -r _ name; do
		grep -qxE "(PASS|FAIL) $name" <<<"$said" || echo "FAIL $name"
	done < <(grep '^verdict ' "$ROOT/tests/lab/xen/cases.sh")
}

# xen_story: what dom0 says, as it says it; true when all cases passed.
xen_story() {
	local dir
	say "building dom0 (minutes at first)"
	xen_image
	dir=$(mktemp -d "${TMPDIR:-/tmp}/ballast-xen.XXXXXX")
	# shellcheck disable=SC2064 # now
	trap "rm -rf '$dir'" EXIT
	xen_boot "$dir" || die "dom0 did not come to its end: $(tail -n 3 "$dir/xen.log")"
	! xen_results "$dir" | grep '^FAIL '
}

# suite_xen: every case's result; that it came to its end is one of them.
suite_xen() {
	local dir outcome name
	xen_image
	dir=$(mktemp -d "${TMPDIR:-/tmp}/ballast-xen.XXXXXX")
	# shellcheck disable=SC2064 # now
	trap "rm -rf '$dir'" EXIT
	if xen_boot "$dir"; then
		result PASS "system xen_dom0_comes_to_its_end"
	else
		result FAIL "system xen_dom0_comes_to_its_end"
		tail -n 20 "$dir/xen.log" "$dir/qemu.log" || true
	fi
	while read -r outcome name; do
		result "$outcome" "system $name"
	done < <(xen_results "$dir")
}
