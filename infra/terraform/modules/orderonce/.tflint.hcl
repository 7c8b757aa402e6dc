plugin "terraform" {
  enabled = true
  preset  = "all"
}
