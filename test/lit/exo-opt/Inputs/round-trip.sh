# round-trip.sh EXO-OPT FOLDER OUT: for each .exo file of the folder.
opt=$1
out=$3
rm -rf "$out"
mkdir "$out"
lower=--pass-pipeline=lower-par-to-async
for file in "$2"/*.exo; do
    name=$out/$(basename "$file")
    "$opt" "$file" -o "$name.1.eir"
    "$opt" "$name.1.eir" -o "$name.2.eir"
    cmp "$name.1.eir" "$name.2.eir"
    "$opt" "$file" --print-loc -o "$name.loc1.eir"
    "$opt" "$name.loc1.eir" --print-loc -o "$name.loc2.eir"
    cmp "$name.loc1.eir" "$name.loc2.eir"
    "$opt" "$name.1.eir" --emit=exo -o "$name.1.exo"
    "$opt" "$name.1.exo" -o "$name.3.eir"
    cmp "$name.1.eir" "$name.3.eir"
    "$opt" "$file" $lower -o "$name.4.eir" 2>/dev/null
    "$opt" "$name.4.eir" -o "$name.5.eir"
    cmp "$name.4.eir" "$name.5.eir"
    "$opt" "$name.1.eir" $lower -o "$name.6.eir" 2>/dev/null
    cmp "$name.4.eir" "$name.6.eir"
done
