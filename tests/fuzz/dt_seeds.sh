#!/bin/sh
# Makes the seeds of dt_fuzz: tests/fuzz/dt_seeds.sh FOLDER. Trees are compiled from tests/data/dt.
set -eu
out=$1
data=$(dirname "$0")/../data/dt
mkdir -p "$out"
for source in "$data"/*.dts; do
    name=$(basename "$source" .dts)
    dtc -q -q -I dts -O dtb -o "$out/$name.dtb" "$source"
    { printf '\0'; cat "$out/$name.dtb"; } > "$out/one-$name"
done
# Two trees, and a base with its overlay: the border as two bytes, high byte first.
pair() { # HOW A B NAME
    size=$(wc -c < "$out/$2.dtb")
    { printf "\\$1"; printf "\\$(printf %03o $((size / 256)))\\$(printf %03o $((size % 256)))"
      cat "$out/$2.dtb" "$out/$3.dtb"; } > "$out/$4"
}
pair 001 a64 high-a64-delay two-a64
pair 001 r4s r4s-tso two-r4s
pair 001 r6s-stock r6s-mainline two-r6s
pair 002 r6s-mainline-symbols overlay-label overlay-label
pair 002 r6s-mainline overlay-queues overlay-queues
rm "$out"/*.dtb
