# The entry of the native program. It is machine code; everything after it is bitcode too.
	.text
	.global _start
	.type _start,%function
_start:
	xor %rbp,%rbp
	mov %rsp,%rdi
	andq $-16,%rsp
	call _start_c
	.section .note.GNU-stack,"",@progbits
