#!/usr/bin/env bash
# gofrom.sh REPOSITORY CACHE ARG...  runs go with the arguments, the module cache CACHE, and a REPOSITORY on this machine in place of
# holdfast's at GitHub: go takes holdfast's modules from its tags, by git, as it would from GitHub. Other modules come out of this
# machine's module cache, or from its proxy if they are not there.
set -euo pipefail
root=github.com/holdfast-go/holdfast
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$1.insteadOf" GIT_CONFIG_VALUE_0="https://$root"
GOFLAGS="$(go env GOFLAGS) -modcacherw -trimpath -buildvcs=false" # with -trimpath, the build cache does not depend on where CACHE is
GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
export GOFLAGS GOPROXY GOPRIVATE=$root GONOPROXY=$root GONOSUMDB=$root GOVCS=*:git GOWORK=off GOMODCACHE=$2
shift 2
exec go "$@"
