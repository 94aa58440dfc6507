" SASS, NVIDIA's machine code: what is coloured before the server's semantic tokens come, and where none do.
if exists('b:current_syntax')
  finish
endif

syntax match nvsassAddress  '/\*\x\+\*/'
syntax match nvsassRemark   '//.*$' contains=nvsassReason
syntax match nvsassLabel    '\.L\w*'
syntax match nvsassReason   '\<\%(long_scoreboard\|short_scoreboard\|wait\|barrier\|membar\|branch_resolving\|no_instructions\|dispatch_stall\|drain\|gmma\|imc_miss\|lg_throttle\|mio_throttle\|tex_throttle\|math_pipe_throttle\|misc\|not_selected\|selected\|sleeping\)\>'
syntax match nvsassShare    '\<\d\+\%(\.\d\+\)\?\s%'
syntax match nvsassBar      '[│┃┌└├─▏▎▍▌▋▊▉█]\+'
syntax match nvsassGuard    '@!\?U\?P\%(\d\|T\)\>'
syntax match nvsassRegister '\<U\?R\%(\d\{1,3}\|Z\)\>'
syntax match nvsassPredicate '\<U\?P\%(\d\|T\)\>'
syntax match nvsassSpecial  '\<SR_[A-Z0-9_.]\+\>'
syntax match nvsassConstant '\<c\%(x\)\?\[[^]]*\]\%(\[[^]]*\]\)\?'
syntax match nvsassNumber   '[-+]\?\<\%(0x\x\+\|\d\+\.\d\+\%(e[-+]\?\d\+\)\?\)\>'
syntax match nvsassOpcode   '\<[A-Z][A-Z0-9]\{1,}[0-9A-Z]*\ze\%([ .;]\|$\)' nextgroup=nvsassModifier contains=nvsassFlow
syntax match nvsassModifier '\%(\.[A-Z0-9_]\+\)\+' contained
syntax keyword nvsassFlow BRA BRX JMP JMX CALL RET EXIT BSYNC BSSY BREAK WARPSYNC KILL contained

highlight default link nvsassAddress   Comment
highlight default link nvsassRemark    Comment
highlight default link nvsassLabel     Label
highlight default link nvsassReason    Type
highlight default link nvsassShare     Number
highlight default link nvsassBar       NonText
highlight default link nvsassGuard     Conditional
highlight default link nvsassRegister  Identifier
highlight default link nvsassPredicate Special
highlight default link nvsassSpecial   Constant
highlight default link nvsassConstant  Constant
highlight default link nvsassNumber    Number
highlight default link nvsassOpcode    Function
highlight default link nvsassModifier  PreProc
highlight default link nvsassFlow      Statement
" Of the server's semantic tokens those that Neovim has no colour for.
highlight default link @lsp.type.label.nvsass Label
highlight default link @lsp.type.enumMember.nvsass Type

let b:current_syntax = 'nvsass'
