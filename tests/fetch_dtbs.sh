#!/bin/bash
# Fetches the device trees of Debian's arm64 kernels for the real-tree test and the benchmark:
#   tests/fetch_dtbs.sh            -> prints the cache folder, with one folder per kernel series in it
# The packages come through apt with a private state folder, so nothing of the host changes and nothing
# is installed. The archive address is the one of this machine's own apt sources (MIRROR overrides it).
# Needs: apt-get, dpkg-deb, tar, the Debian archive keyring. Once fetched, no network is used.
set -euo pipefail

cache=${RINGSIDE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ringside}/dtbs

# series, suite, pattern of the package that holds the .dtb files (7.x moved them out of linux-image)
sets=(
    "6.12 trixie linux-image-6\.12\.[0-9]+\+deb13-arm64"
    "7.2 sid linux-base-7\.2\.[0-9]+\+deb[0-9]+-arm64"
)

mirror() {
    if [ -n "${MIRROR:-}" ]; then
        echo "$MIRROR"
        return
    fi
    local code suite uri uris
    code=$(. /etc/os-release && echo "$VERSION_CODENAME")
    uris=$(apt-get update --print-uris 2> /dev/null)
    for suite in "$code-updates" "$code"; do
        uri=$(sed -n "s|^'\(.*\)/dists/$suite/InRelease'.*|\1|p" <<< "$uris" | head -1)
        if [ -n "$uri" ]; then
            echo "$uri"
            return
        fi
    done
    echo "fetch_dtbs: no Debian archive in the apt sources; set MIRROR" >&2
    return 1
}

apt_state() { # FOLDER SUITE: a private apt state; prints its configuration file
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    mkdir -p "$1/lists/partial" "$1/cache/archives/partial"
    : > "$1/status"
    echo "deb [arch=arm64 signed-by=$keyring] $(mirror) $2 main" > "$1/sources.list"
    cat > "$1/apt.conf" << CONF
APT::Architecture "arm64"; APT::Architectures {"arm64";}; APT::Sandbox::User "root";
Acquire::Languages "none"; Dir::State "$1"; Dir::State::Lists "$1/lists";
Dir::State::status "$1/status"; Dir::Cache "$1/cache"; Dir::Etc::sourcelist "$1/sources.list";
Dir::Etc::sourceparts "/dev/null"; Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
CONF
    echo "$1/apt.conf"
}

fetch() { # SERIES SUITE PATTERN
    local out=$cache/$1 state conf package
    if [ -e "$out/PACKAGE" ]; then
        return
    fi
    state=$(mktemp -d "$cache/apt-$2.XXXXXX")
    conf=$(apt_state "$state" "$2")
    APT_CONFIG=$conf apt-get -qq update >&2
    package=$(APT_CONFIG=$conf apt-cache pkgnames | grep -E -x "$3" | sort -V | tail -1)
    if [ -z "$package" ]; then
        echo "fetch_dtbs: no package like $3 in $2" >&2
        return 1
    fi
    (cd "$state" && APT_CONFIG=$conf apt-get -qq download "$package" >&2)
    rm -rf "$out.part"
    mkdir -p "$out.part"
    dpkg-deb --fsys-tarfile "$state"/*.deb |
        tar -x -C "$out.part" --no-same-owner --wildcards '*.dtb' '*.dtbo'
    echo "$package" > "$out.part/PACKAGE"
    mv "$out.part" "$out"
    rm -rf "$state"
}

mkdir -p "$cache"
for entry in "${sets[@]}"; do
    read -r series suite pattern <<< "$entry"
    fetch "$series" "$suite" "$pattern"
done
echo "$cache"
