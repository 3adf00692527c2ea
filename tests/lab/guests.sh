# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# The guests of a lab, and their figures as libvirt and the QEMU processes give them; nothing here
# asks ballastd. Needs lib.sh, image.sh, lab.sh. Sizes are in MiB unless the name says otherwise.

# guest_define NAME MIB [yes]: a persistent domain; "yes" for free page reporting.
guest_define() {
	local name=$1 mib=$2 reporting=${3:-no} balloon='' kernel initramfs
	kernel=$(image_kernel)
	initramfs=$(image_initramfs "$kernel")
	[ "$reporting" = no ] || balloon=" freePageReporting='on'"
	cat >"$LAB/$name.xml" <<-EOF
		<domain type='qemu'>
		  <name>$name</name>
		  <memory unit='MiB'>$mib</memory>
		  <vcpu>1</vcpu>
		  <os>
		    <type arch='x86_64' machine='pc'>hvm</type>
		    <kernel>$(echo "$kernel"/boot/vmlinuz-*)</kernel>
		    <initrd>$initramfs</initrd>
		    <cmdline>console=ttyS0 quiet panic=1 psi=1 mitigations=off</cmdline>
		  </os>
		  <features><acpi/><tcg><tb-cache unit='MiB'>16</tb-cache></tcg></features>
		  <cpu mode='custom'><model>qemu64</model></cpu>
		  <on_crash>destroy</on_crash>
		  <devices>
		    <controller type='usb' model='none'/>
		    <controller type='virtio-serial' index='0'/>
		    <serial type='file'><source path='$LAB/$name.console'/></serial>
		    <channel type='unix'>
		      <source mode='bind' path='$LAB/$name.port'/>
		      <target type='virtio' name='ballast.lab'/>
		    </channel>
		    <channel type='unix'>
		      <source mode='bind' path='$LAB/$name.agent'/>
		      <target type='virtio' name='org.ballast.agent.0'/>
		    </channel>
		    <disk type='file' device='disk'>
		      <driver name='qemu' type='raw'/>
		      <source file='$LAB/data.img'/>
		      <target dev='vda' bus='virtio'/>
		      <readonly/>
		    </disk>
		    <memballoon model='virtio'$balloon/>
		  </devices>
		</domain>
	EOF
	lab_virsh define "$LAB/$name.xml" >/dev/null
}

guest_start() {
	lab_virsh start "$1" >/dev/null
	setsid "$CACHE/port" serve "$LAB/$1.port" "$LAB/$1.sock" >/dev/null 2>&1 </dev/null &
	echo $! >"$LAB/$1.port.pid"
}

# guest_stop NAME: at once, like a power cut; the domain stays defined.
guest_stop() {
	lab_virsh destroy "$1" >/dev/null || true
	end_process "$(<"$LAB/$1.port.pid")" "$LAB"
	rm -f "$LAB/$1.port.pid" "$LAB/$1.sock"
}

# guest_ready NAME: waits until the guest answers.
guest_ready() {
	wait_for 60 test -S "$LAB/$1.sock" && guest "$1" true
}

# guest NAME COMMAND...: has the guest do it; its output and status. ASK_SECONDS bounds it.
guest() {
	local name=$1
	shift
	"$CACHE/port" ask "$LAB/$name.sock" "${ASK_SECONDS:-60}" "$*"
}

# guest_value NAME WORD: one number of the guest's report.
guest_value() {
	guest "$1" report | awk -v w="$2" '$1 == w { print $2 }'
}

guest_pid() {
	cat "$LAB/run/libvirt/qemu/$1.pid"
}

# guest_actual NAME: what the balloon leaves the guest, from libvirt.
guest_actual() {
	lab_virsh dominfo "$1" | awk '/^Used memory:/ { print int($3 / 1024) }'
}

# guest_max NAME: the most the guest may have, from libvirt.
guest_max() {
	lab_virsh dominfo "$1" | awk '/^Max memory:/ { print int($3 / 1024) }'
}

# guest_resident NAME [MAXIMUM]: what of the guest's memory is on the host: its own mapping in smaps.
guest_resident() {
	awk -v least="$((${2:-$(guest_max "$1")} * 1024))" '
		/^Size:/ { size = $2 }
		/^Rss:/ && size >= least && !found { print int($2 / 1024); found = 1 }
	' "/proc/$(guest_pid "$1")/smaps"
}

# guest_cost NAME: all that its QEMU has resident, the emulator's own memory included.
guest_cost() {
	awk '/^VmRSS:/ { print int($2 / 1024) }' "/proc/$(guest_pid "$1")/status"
}

# guest_set_limit NAME MIB: its soft limit, as an administrator sets it.
guest_set_limit() {
	lab_virsh memtune "$1" --soft-limit "${2}MiB" --config
}

# balloon_commands [SINCE_LINE]: every balloon command in libvirtd's log: "LINE TIME NAME MIB".
# A monitor is known by its address; "Entering monitor" says which domain's it is.
balloon_commands() {
	awk -v since="${1:-0}" '
		/Entering monitor/ {
			match($0, /mon=0x[0-9a-f]+/); m = substr($0, RSTART + 4, RLENGTH - 4)
			match($0, /name=[^ )]+/); name[m] = substr($0, RSTART + 5, RLENGTH - 5)
		}
		/QEMU_MONITOR_SEND_MSG/ && /"execute":"balloon"/ && NR > since {
			match($0, /mon=0x[0-9a-f]+/); m = substr($0, RSTART + 4, RLENGTH - 4)
			match($0, /"value":[0-9]+/); v = substr($0, RSTART + 8, RLENGTH - 8)
			t = $1 "T" $2; sub(/:$/, "", t)
			print NR, t, name[m], int(v / 1048576)
		}
	' "$LAB/libvirtd.log"
}

# stats_reads SINCE_LINE NAME: how often libvirtd asked that guest's monitor for its statistics since.
stats_reads() {
	awk -v since="$1" -v wanted="$2" '
		/Entering monitor/ {
			match($0, /mon=0x[0-9a-f]+/); m = substr($0, RSTART + 4, RLENGTH - 4)
			match($0, /name=[^ )]+/); name[m] = substr($0, RSTART + 5, RLENGTH - 5)
		}
		/QEMU_MONITOR_SEND_MSG/ && /"guest-stats"/ && NR > since {
			match($0, /mon=0x[0-9a-f]+/); m = substr($0, RSTART + 4, RLENGTH - 4)
			n += name[m] == wanted
		}
		END { print n + 0 }
	' "$LAB/libvirtd.log"
}

# log_mark: where libvirtd's log stands, for balloon_commands.
log_mark() {
	wc -l <"$LAB/libvirtd.log"
}
