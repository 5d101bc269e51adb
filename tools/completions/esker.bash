# bash completion for esker(1): the program says itself what fits, so that it always knows.

_esker() {
  local program="${COMP_WORDS[0]/#\~/$HOME}" current="${COMP_WORDS[COMP_CWORD]}" files="" line
  local -a found=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      files=yes
    else
      found+=("${line%%$'\t'*}")
    fi
  done < <("$program" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=()
  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null  # quotes what has to be, and marks directories
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    COMPREPLY+=("${found[@]}")
  else
    for line in "${found[@]}"; do
      COMPREPLY+=("$(printf %q "$line")")
    done
  fi
}

complete -F _esker esker
