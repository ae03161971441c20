# Takes as many stones as it may.
while read -r word heap rest; do
    if [ "$word" = move ]; then
        if [ "$heap" -lt 3 ]; then echo "$heap"; else echo 3; fi
    fi
done
