#!/usr/bin/env bash
# install.sh COMMAND...  installs those of redis-server, faketime, git, make, gcc, initdb (PostgreSQL), javac and mvn that are missing,
# by apt-get or brew, with sudo only if not root. Exit status 1, and a line that says why, if that is not possible.
set -euo pipefail

missing=()
for command in "$@"; do
	command -v "$command" >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/$command" >/dev/null || missing+=("$command")
done
if [ "${#missing[@]}" -eq 0 ]; then
	exit 0
fi

fail() {
	echo "install.sh: cannot install ${missing[*]}: $1" >&2
	exit 1
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		fail "not root, and there is no sudo"
	fi
}

by_apt() {
	local packages=() command
	for command in "${missing[@]}"; do
		case $command in
		gcc) packages+=(gcc libc6-dev) ;;
		initdb) packages+=(postgresql) ;;
		javac) packages+=(default-jdk-headless) ;;
		mvn) packages+=(maven) ;;
		*) packages+=("$command") ;;
		esac
	done
	as_root apt-get update -qq
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null || fail "apt-get failed"
	if [[ " ${missing[*]} " == *" redis-server "* ]]; then
		stop_service redis-server
	fi
	if [[ " ${missing[*]} " == *" initdb "* ]]; then
		stop_service postgresql
	fi
}

# The packages start servers on ports 6379 and 5432, which nobody here needs.
stop_service() {
	if [ -d /run/systemd/system ]; then
		as_root systemctl disable --quiet --now "$1"
	elif [ -x "/etc/init.d/$1" ]; then
		as_root "/etc/init.d/$1" stop >/dev/null
	fi
}

echo "install.sh: installing ${missing[*]}"
if command -v apt-get >/dev/null; then
	by_apt
elif command -v brew >/dev/null; then
	missing=("${missing[@]/#redis-server/redis}")
	missing=("${missing[@]/#initdb/postgresql}")
	missing=("${missing[@]/#javac/openjdk}")
	missing=("${missing[@]/#mvn/maven}")
	brew install "${missing[@]/#faketime/libfaketime}" || fail "brew failed"
else
	fail "there is neither apt-get nor brew"
fi
