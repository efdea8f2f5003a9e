#!/bin/sh
# Builds MinIO, an S3 server, from its Go module into `.stores`, for `make test-slow MINIO=1`. Needs Go 1.24 or newer and about
# fifteen minutes, once; Go itself checks the module's content against its public record of checksums.
cd "$(dirname "$0")/.." || exit 1

VERSION=v0.0.0-20260212201848-7aac2a2c5b7c

[ -x .stores/minio ] && [ "$(cat .stores/version 2>/dev/null)" = "$VERSION" ] && exit 0
if ! command -v go >/dev/null; then
    echo "MinIO is built with Go, and there is no go on PATH; install Go 1.24 or newer, or leave MINIO=1 out" >&2
    exit 1
fi
echo "building MinIO $VERSION"
GOBIN="$PWD/.stores" go install -trimpath -ldflags "-s -w" "github.com/minio/minio@$VERSION" || exit 1
echo "$VERSION" > .stores/version
