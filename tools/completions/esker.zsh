#compdef esker
# zsh completion for esker(1)

_esker_stores() {
  local home=${ESKER_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/esker}
  local -a stores
  stores=($home/*/esker(N.:h:t))
  _alternative "stores:store:($stores)" 'paths:path:_files -/'
}

_esker() {
  local -a verbs session_verbs common change prompt codec output taking own
  verbs=(
    'info:show what a store is made for'
    'ls:list stores, or the paths in one'
    'match:tell how many leading tokens are stored'
    'stat:show what a store holds, and its counters'
    'ps:show which processes have a store open'
    'log:show what happened'
    'verify:check every byte'
    'reap:clean up after dead processes'
    'session:look after sessions'
    "import:store an engine's file"
    'export:write a prefix as a file'
    'convert:make another kind of file of one'
    'cat:write the rows of one layer for numpy'
    'create:make a store'
    'rm:forget paths'
    'evict:free what was not used for longest'
    'trim:return disk space'
    'destroy:delete a store'
    'diff:compare stores or snapshots'
    'merge:make one snapshot out of several'
    'split:take sessions out of a snapshot'
    'repack:compress a snapshot in another way'
    'backup:write all sessions as a snapshot'
    'restore:bring a snapshot back'
    'check:check every byte'
    'prune:free what was not used for longest'
    'resize:give a store another capacity'
    'maintain:do once what should be done daily'
    'config:what holds for all stores of the home'
    'help:show the help of a command'
  )
  session_verbs=(
    'ls:list the sessions'
    'show:show all that is known of one'
    'rm:forget sessions'
    'fork:start a new one where another is'
    'rename:give one another name'
    'keep:never evict its blocks'
  )
  common=(
    '(-s --store)'{-s,--store}'[the store]:store:_esker_stores'
    '--json[answer with one JSON document]'
    '(-q --quiet)'{-q,--quiet}'[no remarks, no progress]'
    '--bytes[print sizes as plain bytes]'
    '--color[when to colour]:when:(auto always never)'
    '(-h --help)'{-h,--help}'[show the help]'
  )
  change=(
    '(-n --dry-run)'{-n,--dry-run}'[change nothing]'
    '(-y --yes)'{-y,--yes}'[do not ask]'
  )
  prompt=(
    '--ids[token ids]:file:_files'
    '--first[only the first tokens]:count:'
    '--namespace[root of the path]:name:'
  )
  codec=(
    '--codec[how it is compressed]:name:(raw lz4 zstd)' '--level[how hard zstd tries]:number:'
    '--threads[how many at a time]:count:'
  )
  output=(
    '(-o --output)'{-o,--output}'[file to write]:file:_files'
    '(-f --force)'{-f,--force}'[replace it]'
  )
  taking=(
    '*--namespace[root of the path, a tenant]:name:' '*--assume-same[key that may differ]:key:'
    '--no-sessions[only rows]' '--replace-sessions[also those with other tokens]'
    '--threads[how many at a time]:count:' '--capacity[cap of a new store]:size:'
    '--cold[part of it for cold blocks]:size:' '--group[for the group too]'
    '--segment-size[size of a segment]:size:'
  )
  if ((CURRENT == 2)) || [[ $words[2] == help ]]; then
    _describe command verbs
    [[ $words[2] == -* ]] && _arguments $common '--version[show the versions]'
    return
  fi
  if [[ $words[2] == session ]]; then
    if ((CURRENT == 3)); then
      _describe command session_verbs
      return
    fi
    case $words[3] in
      ls) own=('--sort[what comes first]:order:(used name tokens)') ;;
      rm) own=('--expired[all whose time to live is over]' $change) ;;
      keep) own=('--keep-max[most that all kept sessions hold]:size:' '--off[no longer]') ;;
    esac
    shift 2 words
    ((CURRENT -= 2))
    _arguments $own $common '1:store:_esker_stores' '*:session:'
    return
  fi
  case $words[2] in
    ls) own=('--sort[what comes first]:order:(age tokens bytes)') ;;
    match) own=($prompt) ;;
    log) own=('(-f --follow)'{-f,--follow}'[go on]' '--since[after this event]:sequence:') ;;
    import)
      own=('--format[kind of file]:format:(esnap llama)' '*--model[a fact]:key=value:'
        '--model-file[the model]:file:_files' '--assume-model[take it for granted]'
        '--session[keep it as this session]:name:' '--create[make the store]'
        '*--set[a note on the session]:key=value:' '--ttl[how long the session lives]:time:'
        '--priority[which kept ones come first]:number:' $taking '2:file:_files')
      ;;
    convert)
      own=('--from[what IN is]:kind:(llama llama-session esnap store)'
        '--to[what OUT is to be]:kind:(llama llama-session esnap store safetensors)'
        '--like[a file of the server]:file:_files' '--arch[architecture]:name:'
        '--file-version[version of the result]:number:' '--path[which path]:path:'
        '--session[which session]:name:' $prompt '*--model[a fact]:key=value:'
        '--model-file[the model]:file:_files' '--assume-model[take it for granted]'
        '(-f --force)'{-f,--force}'[replace it]' '1:file:_files' '2:file:_files')
      ;;
    cat)
      own=('--layer[the layer]:number:' '--plane[which rows]:plane:(key value)'
        '--range[tokens from A up to before B]:range:' $prompt '--session[which session]:name:'
        '(-o --output)'{-o,--output}'[file to write]:file:_files'
        '(-f --force)'{-f,--force}'[replace it]')
      ;;
    export)
      own=('--format[kind of file]:format:(esnap llama llama-session safetensors)'
        '--like[a file of the server]:file:_files' '--arch[architecture]:name:'
        $prompt '*--session[what is stored of it]:name:' '--lossy[fewer bits]:name:(q8 q4)'
        $codec $output)
      ;;
    restore) own=($taking '2:file:_files') ;;
    backup) own=('--all[all stores of the home, to]:directory:_files -/' $codec $output) ;;
    diff)
      shift words
      ((CURRENT--))
      _arguments '*--namespace[a tenant]:name:' $common '*:store or snapshot:_files'
      return
      ;;
    merge | split | repack)
      [[ $words[2] == split ]] && own=('*--session[that is to be in it]:name:')
      [[ $words[2] == repack ]] && own=('--lossy[fewer bits]:name:(q8 q4)')
      shift words
      ((CURRENT--))
      _arguments $own $codec $output $common '*:snapshot:_files'
      return
      ;;
    create)
      own=('--layers[layers]:count:' '--kv-heads[KV heads]:count:' '--head-dim[elements]:count:'
        '--dtype[type]:type:(f32 f16 bf16 f8_e4m3 f8_e5m2 i8 q8_0 q4_0)'
        '--like[take the geometry from]:file:_files' '--block-tokens[tokens per block]:count:'
        '*--model[a fact]:key=value:' '--model-file[the model]:file:_files'
        '--capacity[cap of all files]:size:' '--group[for the group too]'
        '--seats[handles at a time]:count:' '--segment-size[size of a segment]:size:')
      ;;
    rm | destroy) own=($change) ;;
    evict | prune)
      own=('--to[keep at most]:size:' '--older-than[last used before]:time:' $change)
      ;;
    trim) own=('--keep-free[until so much is free]:size:' $change) ;;
    resize)
      own=('--capacity[the new cap]:size:' '--cold[the part for cold blocks]:size:' $change)
      ;;
    maintain)
      own=('--all[all stores of the home]' '--freeze-after[last used before]:time:'
        '(-n --dry-run)'{-n,--dry-run}'[change nothing]')
      ;;
    config)
      own=('--budget[most of all stores]:size:(none)'
        '--keep-free[what growth leaves free]:size:(default)')
      ;;
  esac
  shift words
  ((CURRENT--))
  _arguments $own $common '1:store:_esker_stores' '*:operand:'
}

_esker "$@"
