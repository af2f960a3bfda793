#!/bin/bash
# Make one part of a table on every host, then the report here:
#     docs/recipes/ssh.sh table3 paper host1 host2 host3
# Every host has this checkout at the same commit, in the same folder, and the data.
# The command can be repeated: finished runs are kept on their hosts.
set -euo pipefail
experiment=$1 tier=$2
shift 2
hosts=("$@") count=$# folder=$(pwd -P) shards=build/shards jobs=()
for ((number = 1; number <= count; number++)); do
    ssh "${hosts[number - 1]}" "cd '$folder' && ./reproduce.sh $experiment --tier $tier \
        --shard $number/$count --store $shards/$number" &
    jobs+=($!)
done
for job in "${jobs[@]}"; do
    wait "$job"
done
rm -rf "$shards/gathered"
for ((number = 1; number <= count; number++)); do
    mkdir -p "$shards/gathered/$number"
    ssh "${hosts[number - 1]}" "tar -C '$folder/$shards/$number' -cf - ." |
        tar -C "$shards/gathered/$number" -xf -
done
./reproduce.sh report "$experiment" --tier "$tier" --merge "$shards/gathered"/*
