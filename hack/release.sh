#!/usr/bin/env bash
# release.sh v1.2.3  makes the commits and the tags of a release, and prints the command that pushes them. It pushes nothing, and
# changes nothing if it fails.
#
# The branch gets two commits:
#
#  1. "Release v1.2.3", with a tag for each module: v1.2.3, cmd/holdfast/v1.2.3 and so on. The go.mod of each requires the others at
#     v1.2.3, and has no replace.
#  2. "Development goes on after v1.2.3", where replace is back. The tags stay part of the branch's history, so that its later
#     commits count as newer than v1.2.3.
#
# Nobody imports bench and the modules in examples: they get no tag and keep replace, since they run in a clone, with what it holds.
#
# The go.sum of a module needs the checksums of those that it requires, which the same commit releases. The checksum of a module
# depends on its own files and on LICENSE alone. So this script completes modules after those that they require, and tags each in a
# scratch clone; for the next one, go fetches it from there and computes its checksum, as the public proxy will do it.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
root=github.com/holdfast-go/holdfast
version=${1:-}

fail() {
	echo "release.sh: $1" >&2
	exit 1
}

number='(0|[1-9][0-9]*)'
word="($number|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
[[ $version =~ ^v[01]\.$number\.$number(-$word(\.$word)*)?$ ]] || fail "'$version' is no version v0.N.N or v1.N.N"
branch=$(git symbolic-ref -q --short HEAD) || fail "no branch is checked out"
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"
[ -z "$(git tag -l "$version" "*/$version")" ] || fail "a tag of $version exists"
grep -qF "## [${version#v}] - " CHANGELOG.md || fail "CHANGELOG.md has no section '## [${version#v}] - DATE'"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch" || :' EXIT
here=$PWD clone=$scratch/clone
git clone -q --shared -c user.name="$(git config user.name)" -c user.email="$(git config user.email)" . "$clone"
cd "$clone"

required() { # paths of our modules in the go.mod of the module in that folder
	sed -nE "s,^(require)?[[:space:]]+($root[^ ]*) v.*,\2,p" "$1/go.mod"
}

# The folders of all modules, each after those that it requires.
modules=$(git ls-files go.mod '*/go.mod' | xargs -n 1 dirname | while read -r module; do
	echo "$module $module"
	for path in $(required "$module"); do
		folder=${path#"$root"}
		folder=${folder#/}
		echo "${folder:-.} $module"
	done
done | tsort)

for module in $modules; do
	for path in $(required "$module"); do
		go mod edit -require="$path@$version" "$module/go.mod"
	done
done
git add -A
development=$(git write-tree)

tags=()
for module in $modules; do
	case $module in bench | examples/*) continue ;; esac
	for path in $(required "$module"); do
		go mod edit -dropreplace="$path" "$module/go.mod"
	done
	for path in $(required "$module"); do
		hack/gofrom.sh "$clone" "$scratch/modules" -C "$module" mod download "$path"
	done
	git add -A
	tag=$module/$version
	tags+=("${tag#./}")
	git update-ref "refs/tags/${tag#./}" "$(git commit-tree "$(git write-tree)" -p HEAD -m "$module is complete")"
done

release=$(git commit-tree "$(git write-tree)" -p HEAD -m "Release $version")
for tag in "${tags[@]}"; do
	git update-ref "refs/tags/$tag" "$release"
done
git tag -f -a -m "$version" "$version" "$release" >/dev/null # git describe looks at tags with a message
next=$(git commit-tree "$development" -p "$release" -m "Development goes on after $version")
git update-ref "refs/heads/$branch" "$next"

cd "$here"
git fetch -q --atomic "$clone" "$branch" 'refs/tags/*:refs/tags/*'
git merge -q --ff-only "$next"
echo "$version is committed and tagged here. To publish it:"
echo "git push --atomic origin $branch ${tags[*]}"
