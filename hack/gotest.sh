#!/usr/bin/env bash
# gotest.sh MODULE PACKAGES ARG...  runs go test with the arguments on the packages of the module.
#
# In CI, whose machines may stand still for seconds, a test that has failed is run again by itself, at most three times. The output
# names it, and so does the file $UNSTABLE, if that is set: it waited for too short a time and is to be mended, but the change is not
# to blame. What no slow machine can bring about stays a failure: two holders, fences out of order, a data race, a goroutine left, a
# panic. Not seen are goroutines left by a package of which a test has failed, for which goleak does not look.
set -euo pipefail
export LC_ALL=C
cd "$1"
packages=$2
shift 2

runner=gotest.tools/gotestsum@v1.13.0
if [ "${CI:-}" != true ] || ! go run "$runner" --version; then
	set -x
	# shellcheck disable=SC2086 # they are several
	exec go test "$@" $packages
fi

events=$(mktemp)
trap 'rm -f "$events"' EXIT
(set -x; go run "$runner" --format standard-quiet --hide-summary skipped --jsonfile "$events" \
	--rerun-fails=3 --rerun-fails-max-failures=40 --rerun-fails-abort-on-data-race --packages "$packages" -- "$@")
if grep -E 'Messages: *\\t(two holders|fences out of order|taken after its end)' "$events" >&2; then
	echo "gotest.sh: a promise is broken; that a second run did not show it means nothing" >&2
	exit 1
fi

names() { # of the tests with this outcome
	grep "\"Action\":\"$1\"" "$events" | grep -o '"Package":"[^"]*","Test":"[^"]*"' | sort -u
}
if grep -F 'goleak: Errors on' "$events" >&2; then
	echo "gotest.sh: a goroutine is left, whatever later runs say" >&2
	exit 1
fi
[ -z "${UNSTABLE:-}" ] || comm -12 <(names fail) <(names pass) >>"$UNSTABLE"
if comm -23 <(names fail) <(names pass) | grep . >&2; then
	echo "gotest.sh: no later run of these has passed" >&2
	exit 1
fi
