#!/usr/bin/env bash
# check-links.sh  fails unless a program that imports a lock kind links exactly these modules and the standard
# library, and election and holdfasttest no other module.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

expected="github.com/google/uuid
github.com/holdfast-go/holdfast
github.com/redis/rueidis
golang.org/x/sys" # the last by rueidis

for kind in rlock fair rwlock semaphore multilock; do
	linked=$(go list -deps -f '{{if not .Standard}}{{.Module.Path}}{{end}}' "./$kind" | sort -u)
	if [ "$linked" != "$expected" ]; then
		echo "check-links.sh: $kind links other modules than it should (< expected, > linked):" >&2
		diff <(echo "$expected") <(echo "$linked") >&2
		exit 1
	fi
done
for package in election holdfasttest; do
	linked=$(go list -deps -f '{{if not .Standard}}{{.Module.Path}}{{end}}' "./$package" | sort -u)
	if [ "$linked" != github.com/holdfast-go/holdfast ]; then
		echo "check-links.sh: $package links" $linked >&2
		exit 1
	fi
done
