# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# All parts of the lab and of ./dev, for those who need several. Sourced with set -euo pipefail.
#
#   lib      saying, waiting, root, packages     build    configure, make, make check
#   image    kernel and initramfs                results  counting and timing what is tested
#   lab      the private libvirtd                lint     formatting, analysers
#   guests   the guests and their figures        suite    ./dev test
#   daemon   ballastd in the lab                 fresh    ./dev soak fresh
#   story    what ./dev run plays                verdict  whether its outcome was right
#   xen      Xen and its dom0 in QEMU            soak     fuzzing and mutants, for longer
#   bench    options and figures of benches
for part in lib image xen lab guests daemon story verdict build bench results lint soak suite fresh; do
	# shellcheck source=/dev/null
	. "${BASH_SOURCE[0]%/*}/$part.sh"
done
