#!/usr/bin/env bash
# install-rivals.sh  installs what bench measures beside us, as far as it is missing: etcd, ZooKeeper, and Java 17 with Maven for
# Redisson, by apt-get, with sudo only if not root. Exit status 1, and a line that says why, if that is not possible; bench then
# leaves out what is missing.
set -euo pipefail

packages=()
command -v etcd >/dev/null || packages+=(etcd-server)
[ -e /usr/share/java/zookeeper.jar ] || packages+=(zookeeper)
command -v javac >/dev/null || packages+=(openjdk-17-jdk-headless)
command -v mvn >/dev/null || packages+=(maven)
if [ "${#packages[@]}" -eq 0 ]; then
	exit 0
fi

fail() {
	echo "install-rivals.sh: cannot install ${packages[*]}: $1" >&2
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

command -v apt-get >/dev/null || fail "there is no apt-get"
echo "install-rivals.sh: installing ${packages[*]}"
as_root apt-get update -qq
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null ||
	fail "apt-get failed"

# The package starts a server, which nobody here needs: bench starts its own.
if [[ " ${packages[*]} " == *" etcd-server "* && -d /run/systemd/system ]]; then
	as_root systemctl disable --quiet --now etcd
fi
