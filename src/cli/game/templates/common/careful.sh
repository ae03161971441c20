# Leaves 4, 8, 12 … stones if it can: from those the other bot cannot win.
while read -r word heap rest; do
    if [ "$word" = move ]; then
        take=$((heap % 4))
        if [ "$take" -eq 0 ]; then echo 1; else echo "$take"; fi
    fi
done
