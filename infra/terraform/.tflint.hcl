plugin "terraform" {
  enabled = true
  preset  = "all"
}

# Of the root and of examples/terraform. The module describes the root's outputs, and variables.tf is its file.
rule "terraform_documented_outputs" {
  enabled = false
}

rule "terraform_standard_module_structure" {
  enabled = false
}
