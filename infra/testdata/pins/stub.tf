# What pins.tf needs of the module, from one variable. infra/check.sh applies the two.
variable "pinned" {
  type = string
}

locals {
  deployment      = { prefix = var.pinned }
  scope           = var.pinned
  deployed_scopes = []
  queue_type      = var.pinned
  orders_table    = var.pinned
  kms_keys        = [var.pinned]
}
