#!/usr/bin/env bash
# actionlint.sh  checks the workflows of GitHub, and their scripts if shellcheck is installed. Without actionlint it says that it is
# skipped, and succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v1.7.12

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin timeout 120 go install "github.com/rhysd/actionlint/cmd/actionlint@$version" || {
	echo "actionlint.sh: skipped, actionlint $version cannot be installed"
	exit 0
}
"$bin/actionlint"
