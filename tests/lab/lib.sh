# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What ./dev, the lab, the system tests and the benches share: saying things, waiting, being root,
# installing packages. Sourced, never run. The caller has set -euo pipefail.

ROOT=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
CACHE=${BALLAST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ballast}
# Where the programs are.
BUILD=${BALLAST_BUILD:-$ROOT/build/plain}

# say LINE...
say() {
	printf '%s\n' "$@"
}

warn() {
	say "$@" >&2
}

die() {
	warn "$*"
	exit 1
}

# now_ms: the clock's milliseconds, the clock that libvirtd's log uses too.
now_ms() {
	date +%s%3N
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

# need_root ARGS...: goes on as root, through sudo, with these arguments of ./dev, and with what of the
# environment it goes by: sudo passes none on.
need_root() {
	[ "$(id -u)" = 0 ] && return 0
	command -v sudo >/dev/null || die "this needs root (or sudo without a password)"
	say "needs root: going on through sudo"
	exec sudo -n env "BALLAST_CACHE=$CACHE" ${CI:+"CI=$CI"} ${BALLAST_BUILD:+"BALLAST_BUILD=$BALLAST_BUILD"} \
		"$ROOT/dev" "$@"
}

# wait_for SECONDS COMMAND...: true as soon as COMMAND is, false when the time is over.
wait_for() {
	local end
	end=$(($(now_ms) + $1 * 1000))
	shift
	until "$@"; do
		[ "$(now_ms)" -lt "$end" ] || return 1
		sleep 0.1
	done
}

# end_process PID MARK: ends PID if its command line still has MARK in it (so a pid that was given
# to somebody else meanwhile is left alone): asked first, killed after three seconds.
end_process() {
	local pid=$1 mark=$2
	is_ours "$pid" "$mark" || return 0
	kill "$pid" 2>/dev/null || return 0
	kill -CONT "$pid" 2>/dev/null || true
	wait_for 3 is_gone "$pid" "$mark" || kill -KILL "$pid" 2>/dev/null || true
	wait_for 3 is_gone "$pid" "$mark" || warn "process $pid does not end"
}

is_ours() {
	[ -r "/proc/$1/cmdline" ] && tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -qF -- "$2"
}

is_gone() {
	! is_ours "$1" "$2"
}

# --- packages

# The packages of each use: the names are Debian's.
packages_of() {
	case $1 in
	build)
		echo gcc make libc6-dev autoconf automake libtool pkg-config xz-utils check libvirt-dev \
			libxml2-dev libxen-dev libjson-c-dev libinih-dev libsystemd-dev uthash-dev libjsmn-dev scdoc
		;;
	lab)
		echo libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86 jq \
			busybox-static gcc libc6-dev passwd procps util-linux
		;;
	test) echo gcovr ccache gnuplot-nox ;;
	bench) echo valgrind linux-perf ;;
	lint) echo git clang clang-format clang-tidy cppcheck shellcheck ;;
	fuzz) echo clang libclang-rt-dev ;;
	fresh) echo debootstrap ;;
	*) die "packages_of: no use named $1" ;;
	esac
}

missing_packages() {
	local p
	for p in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || echo "$p"
	done
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
		-o DPkg::Lock::Timeout=300 "$@" >>"$CACHE/apt.log" 2>&1 </dev/null
}

# apt_update: the lists of packages, when they are missing or too old to install from.
apt_update() {
	say "apt-get update"
	as_root apt-get update -q -o DPkg::Lock::Timeout=300 >>"$CACHE/apt.log" 2>&1 </dev/null
}

# install_for USE...: installs what the uses lack, says what, asks nothing.
install_for() {
	local use missing names=()
	for use in "$@"; do
		read -ra missing <<<"$(packages_of "$use")"
		names+=("${missing[@]}")
	done
	mapfile -t missing < <(missing_packages "${names[@]}" | sort -u)
	[ ${#missing[@]} -gt 0 ] || return 0
	mkdir -p "$CACHE"
	say "installing: ${missing[*]}"
	apt_install "${missing[@]}" && return 0
	apt_update
	apt_install "${missing[@]}" || {
		tail -n 20 "$CACHE/apt.log" >&2
		die "could not install: ${missing[*]} (whole log: $CACHE/apt.log)"
	}
}
