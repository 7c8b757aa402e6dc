# Pins protect a deployment from a plan that would destroy part of it by accident. A pin
# keeps its first value in the state (ignore_changes), and its postcondition fails a plan
# with another value. Terraform checks no postconditions on destroy, so `terraform
# destroy` still works.

# With the variables of another environment, an apply would replace every resource in this
# state, and delete the messages in the queues.
resource "terraform_data" "deployment" {
  input = local.deployment

  lifecycle {
    ignore_changes = [input]

    # A state of a release without pins does not record its scope, but the function has it.
    precondition {
      condition     = alltrue([for scope in local.deployed_scopes : scope == local.scope])
      error_message = <<-EOT
        scope: the deployed order function has ${join(", ", local.deployed_scopes)}, and this plan has ${local.scope}.
        Orders in progress could not settle. Set the variable scope to the deployed one.
      EOT
    }

    postcondition {
      condition     = self.input == local.deployment
      error_message = <<-EOT
        This state belongs to another deployment:
          state ${jsonencode(self.input)}
          plan  ${jsonencode(local.deployment)}
        Use the state, variables and credentials of the same deployment. If only the scope differs, set the
        variable scope to the one in the state: it must never change, because orders in progress could not
        settle.
      EOT
    }
  }
}

# The type of a queue is fixed when it is created, so a change replaces both queues and
# deletes the messages in them.
resource "terraform_data" "queue_type" {
  input = local.queue_type

  lifecycle {
    ignore_changes = [input]

    postcondition {
      condition     = self.input == local.queue_type
      error_message = <<-EOT
        fifo: changing ${self.input} queues to ${local.queue_type} queues would replace both queues and delete
        their messages. To change it, stop the producers, wait until both queues are empty, then apply with
        -replace=module.orderonce.terraform_data.queue_type.
      EOT
    }
  }
}

# A table with another name is another table: the plan would delete the one with the rows.
resource "terraform_data" "orders_table" {
  input = local.orders_table

  lifecycle {
    ignore_changes = [input]

    postcondition {
      condition     = self.input == local.orders_table
      error_message = <<-EOT
        orders_table_name: this plan would delete the table ${self.input} and use ${local.orders_table}.
        To use a table that was restored from a backup, follow docs/guides/operate.md, "After a restore from
        backup".
      EOT
    }
  }
}

# A message stays encrypted with the key that the queue had when it was sent. Without that
# key the function can neither receive nor park it, and SQS deletes it after seven days.
resource "terraform_data" "kms_keys" {
  input = local.kms_keys

  lifecycle {
    ignore_changes = [input]

    postcondition {
      condition     = length(setsubtract(toset(self.input), toset(local.kms_keys))) == 0
      error_message = <<-EOT
        kms_key_arn: messages, rows or the secret may still be encrypted with
          ${join(", ", setsubtract(toset(self.input), toset(local.kms_keys)))}
        Add it to previous_kms_key_arns. Once both queues have been empty and no backup needs it, you can
        remove it with -replace=module.orderonce.terraform_data.kms_keys.
      EOT
    }
  }
}

# The pin keeps its first value, so it does not protect a key that was added later.
check "kms_keys_are_pinned" {
  assert {
    condition     = length(setsubtract(toset(local.kms_keys), toset(terraform_data.kms_keys.input))) == 0
    error_message = <<-EOT
      kms_key_arn: the state does not record
        ${join(", ", setsubtract(toset(local.kms_keys), toset(terraform_data.kms_keys.input)))}
      so a later plan that removes it would not be rejected. Apply with -replace=module.orderonce.terraform_data.kms_keys.
    EOT
  }
}
