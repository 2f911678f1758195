#!/usr/bin/env bash
# gotest.sh MODULE PACKAGES ARG...  runs go test with the arguments on the packages of the module, two at once or as -p=N says. Each
# package prints a line when it ends. All are compiled before the first runs, which a compiler would disturb. make check is what vets.
#
# If UNSTABLE is the absolute path of a file, as in .ci/run, whose machines may stand still for seconds, a test that has failed is run again by itself,
# once. The output and that file name it: it waited for too short a time and is to be mended, but the change is not to blame. What no
# slow machine can bring about stays a failure: two holders, fences out of order, a data race, a goroutine left, a panic. Not seen are
# goroutines left by a package of which a test has failed, for which goleak does not look.
set -euo pipefail
export LC_ALL=C
export GOGC=${GOGC:-400} # a Redis in virtual time makes an interpreter for each script: a third of the time was the collector's
module=$1
cd "$module"
packages=$2
shift 2
set -- -vet=off -ldflags=-w "$@" # a third of the linker's time was for debuggers

runner=gotest.tools/gotestsum@v1.13.0
if [ -z "${UNSTABLE:-}" ] || ! go run "$runner" --version; then
	at_once=2 race=
	for arg in "$@"; do
		case $arg in
			-p=*) at_once=${arg#-p=};;
			-race) race=-race;;
		esac
	done
	echo "== $module: go test $* (compiles first)"
	# shellcheck disable=SC2086 # they are several
	tested=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' $packages)
	# shellcheck disable=SC2086
	go list $race -test -export $tested >/dev/null
	printf '%s\n' $tested | xargs -P "$at_once" -I{} go test "$@" {}
	exit
fi

events=$(mktemp)
trap 'rm -f "$events"' EXIT
(set -x; go run "$runner" --format standard-quiet --hide-summary skipped --jsonfile "$events" \
	--rerun-fails=1 --rerun-fails-max-failures=40 --rerun-fails-abort-on-data-race --packages "$packages" -- "$@")
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
comm -12 <(names fail) <(names pass) >>"$UNSTABLE"
if comm -23 <(names fail) <(names pass) | grep . >&2; then
	echo "gotest.sh: no later run of these has passed" >&2
	exit 1
fi
