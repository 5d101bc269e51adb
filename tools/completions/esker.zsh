#compdef esker
# zsh completion for esker(1): the program says itself what fits, so that it always knows.

_esker() {
  local -a lines found
  local line word files=0
  lines=("${(@f)$(${(Q)words[1]} __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  for line in $lines; do
    if [[ $line == :files ]]; then
      files=1
    else
      word=${line%%$'\t'*}
      found+=("${word//:/\\:}:${line#*$'\t'}")
    fi
  done
  ((${#found})) && _describe -t values 'what fits' found
  ((files)) && _files
  return 0
}

_esker "$@"
