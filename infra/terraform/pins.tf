# What a later plan must not change by accident. Each pin keeps its first value in the
# state (ignore_changes) and refuses a plan with another one. Terraform checks no
# postcondition when it destroys, so `terraform destroy` stays possible.

# Another environment's variables on this state would destroy everything here: the queues
# first, with the messages in them.
resource "terraform_data" "deployment" {
  input = local.deployment

  lifecycle {
    ignore_changes = [input]

    postcondition {
      condition     = self.input == local.deployment
      error_message = "This state belongs to ${jsonencode(self.input)}, and this plan is for ${jsonencode(local.deployment)}. Use the state, the variables and the credentials of one deployment; each has a state of its own. A scope cannot be changed at all, because orders that are under way could not settle: set the variable scope to the one in the state."
    }
  }
}

# A queue's type is fixed when it is created, so another one replaces both queues and
# loses the messages in them.
resource "terraform_data" "queue_type" {
  input = local.queue_type

  lifecycle {
    ignore_changes = [input]

    postcondition {
      condition     = self.input == local.queue_type
      error_message = "The queues are ${self.input} queues, and a plan for ${local.queue_type} queues would replace both and lose the messages in them. Stop the producers, wait until both queues are empty, then apply with -replace=terraform_data.queue_type."
    }
  }
}

# A table under another name is another table: the plan would delete the one that has the
# rows.
resource "terraform_data" "orders_table" {
  input = local.orders_table

  lifecycle {
    ignore_changes = [input]

    postcondition {
      condition     = self.input == local.orders_table
      error_message = "The orders table is ${self.input}, and this plan would delete it and use ${local.orders_table}. To use a table that was restored from a backup, follow docs/guides/operate.md, \"After a restore from backup\"."
    }
  }
}

# Messages that wait stay encrypted with the key of the time when they were sent. Without
# that key the function can neither receive nor park them, and SQS deletes them after a
# week.
resource "terraform_data" "kms_keys" {
  input = local.kms_keys

  lifecycle {
    ignore_changes = [input]

    postcondition {
      condition     = length(setsubtract(toset(self.input), toset(local.kms_keys))) == 0
      error_message = "Messages, rows or the secret may still be encrypted with ${join(", ", setsubtract(toset(self.input), toset(local.kms_keys)))}: keep it in previous_kms_key_arns. To forget it, once both queues have been empty and no backup needs it, apply with -replace=terraform_data.kms_keys."
    }
  }
}
