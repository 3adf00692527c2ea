# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# ./dev soak fresh: the README's two commands in a clean clone inside a new Debian 12, made with
# debootstrap; nothing of this machine but its kernel. What is mounted, is mounted in a namespace of
# its own and goes with it. Needs lib.sh.

fresh() {
	local mirror status=0
	FRESH=$(mktemp -d "${TMPDIR:-/tmp}/ballast-fresh.XXXXXX")
	trap 'rm -rf --one-file-system "$FRESH"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	install_for fresh
	mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
		grep -oE '(https?|file)://[^ ]*/debian/?( |$)' | head -n 1 || true)
	say "debootstrap bookworm"
	debootstrap --variant=minbase bookworm "$FRESH/root" "${mirror:-http://deb.debian.org/debian}" \
		>"$FRESH/debootstrap.log" 2>&1 || {
		tail -n 20 "$FRESH/debootstrap.log" >&2
		die "debootstrap failed"
	}
	cp /etc/resolv.conf /etc/hosts "$FRESH/root/etc/" 2>/dev/null || true
	fresh_in 'apt-get install -q -y --no-install-recommends git >/dev/null 2>&1'
	git clone -q --no-hardlinks "$ROOT" "$FRESH/root/root/ballast"
	fresh_packages >"$FRESH/before"
	fresh_step "./dev run" 480 || status=1
	fresh_step "./dev run" 120 || status=1
	fresh_step "./dev test" || status=1
	fresh_packages >"$FRESH/after"
	say "" "packages that were installed:"
	comm -13 "$FRESH/before" "$FRESH/after" | paste -sd' ' | fold -s -w 100
	say "" "fresh: exit status $status"
	return $status
}

# fresh_in COMMAND: in the chroot, with its own mounts.
fresh_in() {
	# shellcheck disable=SC2016 # expanded inside
	unshare -m --propagation private bash -euc '
		mount --bind "$1" "$1"
		mount -t proc proc "$1/proc"
		mount --rbind /sys "$1/sys"
		mount --rbind /dev "$1/dev"
		mount -t tmpfs tmpfs "$1/run"
		exec chroot "$1" /usr/bin/env -u BALLAST_CACHE -u XDG_CACHE_HOME HOME=/root \
			PATH=/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/tmp bash -c "$2"
	' _ "$FRESH/root" "$1"
}

fresh_packages() {
	dpkg-query --admindir="$FRESH/root/var/lib/dpkg" -W -f '${Package}\n' | sort
}

# fresh_step COMMAND [SECONDS]: timed; the end of what it printed. More than so many seconds are a failure.
fresh_step() {
	local begin took status=0
	begin=$(now_ms)
	say "" "== $1"
	fresh_in "cd /root/ballast && $1" >"$FRESH/step.log" 2>&1 </dev/null || status=$?
	tail -n "${FRESH_LINES:-45}" "$FRESH/step.log"
	took=$((($(now_ms) - begin) / 1000))
	say "== $1: exit status $status, $took s${2:+ (at most $2)}"
	[ "$took" -le "${2:-$took}" ] || {
		say "== $1: took too long"
		return 1
	}
	return $status
}
