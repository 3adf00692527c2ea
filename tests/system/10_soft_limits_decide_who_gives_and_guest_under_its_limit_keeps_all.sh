# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# The outcome of ./dev run, phase by phase. Leaves its phases and its recording in the lab's folder.
. "$(dirname "$0")/common.sh"

story_play "$LAB/run.record"
story_verdict
