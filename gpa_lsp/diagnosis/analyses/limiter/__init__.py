"""What limits a kernel: one verdict, which everything that speaks of it quotes."""
