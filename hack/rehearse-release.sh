#!/usr/bin/env bash
# rehearse-release.sh  copies what is here and known to git, committed or not, into a repository of its own, makes a release there by
# release.sh, pushes it to another repository as release.sh says, and then installs and gets it from there as users do, with an empty
# module cache. It takes half a minute on 2 cores, two minutes with an empty build cache, and no network if this machine's module
# cache has the modules of all go.mod files.
set -euo pipefail
export LC_ALL=C GOSUMDB=off # the modules of others come out of a cache, which has compared them
cd "$(dirname "$0")/.."
PATH=$(go env GOROOT)/bin:$PATH # an older go would want the checksum of the one that go.mod asks for
root=github.com/holdfast-go/holdfast
version=v0.999.0 # none that will be released

unset $(git rev-parse --local-env-vars) # a hook of git calls this with its own repository
if ! up=$(git rev-parse --show-cdup) || [ -n "$up" ] || ! git rev-parse -q --verify HEAD >/dev/null; then
	echo "rehearse-release.sh: skipped, this is not a clone"
	exit
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch" || :' EXIT
hack=$PWD/hack clone=$scratch/clone origin=$scratch/origin
git init -q --bare "$origin"
git init -q -b main "$clone"
git archive HEAD | tar -xf - -C "$clone"
git diff --quiet HEAD || git diff --binary HEAD | git -C "$clone" apply
cd "$clone"
# From here on, git has this configuration and nobody else's.
printf '[user]\nname = holdfast\nemail = holdfast@example.org\n[maintenance]\nauto = false\n[gc]\nauto = 0\n' >"$scratch/gitconfig"
export GIT_CONFIG_GLOBAL=$scratch/gitconfig GIT_CONFIG_SYSTEM=/dev/null
git remote add origin "$origin"
git add -A -f
git commit -qm "What is here"

fail() {
	echo "rehearse-release.sh: $1" >&2
	exit 1
}

state() {
	git for-each-ref
	git status --porcelain
}

refuses() { # VERSION REASON
	before=$(state)
	! hack/release.sh "$1" >/dev/null 2>"$scratch/reason" || fail "release.sh accepts '$1', where it should say: $2"
	grep -qF -- "$2" "$scratch/reason" || fail "release.sh does not say '$2': $(cat "$scratch/reason")"
	[ "$(state)" = "$before" ] || fail "release.sh has changed something, and then said '$2'"
}

for wrong in '' 0.1.0 v0.1 v0.01.0 v0.1.0-01 v0.1.0+1 v2.0.0 main; do
	refuses "$wrong" "is no version"
done
refuses $version "CHANGELOG.md has no section"
printf '\n## [%s] - 2020-01-31\n' "${version#v}" >>CHANGELOG.md
refuses $version "changes that are not committed"
git commit -qam "The changelog has $version"
git tag cmd/holdfast/$version
refuses $version "a tag of $version exists"
git tag -d cmd/holdfast/$version >/dev/null
git checkout -q --detach
refuses $version "no branch"
git checkout -q main

start=$(git rev-parse HEAD)
push=$(hack/release.sh $version | tail -n 1)
[ -z "$(git ls-remote "$origin")" ] || fail "release.sh has pushed by itself"
said=$(eval "$push" 2>&1) || fail "what release.sh says does not push: $said"

released=$(git ls-files go.mod '*/go.mod' | xargs -n 1 dirname | grep -vE '^(bench|examples/.*)$')
expected=$(for module in $released; do echo "$module/$version"; done | sed 's,^\./,,' | sort)
tags=$(git ls-remote --tags --refs "$origin" | sed 's,.*refs/tags/,,' | sort)
[ "$tags" = "$expected" ] || fail "these tags are there: $tags"
[ "$(git rev-list "$start..HEAD")" = "$(git rev-parse HEAD "$version^{}")" ] || fail "the branch has not two more commits"
[ "$(git describe HEAD^)" = $version ] || fail "git describe calls the release $(git describe HEAD^)"
! git diff "$start" HEAD | grep '^[-+]' | grep -vE "^(---|\+\+\+) |^[-+].*$root.* v" || fail "development does not go on as before"

user() { # go with what has been pushed
	"$hack/gofrom.sh" "$origin" "$scratch/modules" "$@" 2>"$scratch/log" || { cat "$scratch/log" >&2 && return 1; }
}

git checkout -q $version
for module in $released; do
	! grep -H -e replace -e '=>' "$module/go.mod" || fail "a replace is left"
	user mod tidy -C "$module" -diff || fail "go.mod or go.sum of $module is not as it should be"
done

GOBIN=$scratch user install $root/cmd/holdfast@$version
said=$("$scratch/holdfast" --version)
[[ $said == "holdfast $version, go1."* ]] || fail "the command says: $said"

mkdir "$scratch/shop" "$scratch/services"
cd "$scratch/shop" # a newcomer, with the README
user mod init shop
user get "$(sed -n 's/^ *go get \([^ ]*\).*/\1/p' "$hack/../README.md")"
awk '/^```/ && go { exit } go; /^```go/ { go = 1 }' "$hack/../README.md" | sed 's/127.0.0.1:6379/127.0.0.1:1/' >main.go
user build
! said=$(./shop 2>&1) || fail "the README's program needs no server"
[[ $said == *"connect: connection refused"* ]] || fail "the README's program says: $said"
cd "$scratch/services" # one who uses all modules
user mod init services
libraries=$(for module in $released; do [ "$module" = . ] || [ "$module" = cmd/holdfast ] || echo "$root/$module"; done)
user get $(printf "%s@$version " $libraries)
{ echo "package services"; printf 'import _ "%s"\n' $libraries; } >services.go
user build
