mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
}

# First, because a state of a release without pins has none.
run "another_scope_than_the_deployed_function_s_is_rejected" {
  command = plan

  override_data {
    target = data.aws_lambda_functions.all
    values = { function_names = ["orderonce-dev-order"] }
  }

  override_data {
    target = data.aws_lambda_function.deployed
    values = { environment = [{ variables = { SCOPE = "orderonce-dev" } }] }
  }

  expect_failures = [terraform_data.deployment]
}

run "the_scope_of_the_deployed_function_is_accepted" {
  command = plan

  variables {
    scope = "orderonce-dev"
  }

  override_data {
    target = data.aws_lambda_functions.all
    values = { function_names = ["orderonce-dev-order"] }
  }

  override_data {
    target = data.aws_lambda_function.deployed
    values = { environment = [{ variables = { SCOPE = "orderonce-dev" } }] }
  }

  assert {
    condition     = one(local.deployed_scopes) == local.scope
    error_message = "deployed_scopes: got ${jsonencode(local.deployed_scopes)}"
  }
}

# What the other runs plan upon.
run "deployed" {
  assert {
    condition     = terraform_data.deployment.output == local.deployment
    error_message = "terraform_data.deployment: must record the deployment"
  }
}

run "the_same_variables_are_accepted" {
  command = plan

  assert {
    condition     = terraform_data.deployment.output == local.deployment
    error_message = "terraform_data.deployment: changed without a change of variables"
  }
}

run "another_environment_on_the_same_state_is_rejected" {
  command = plan

  variables {
    environment = "prod"
    scope       = "orderonce-dev-836569"
  }

  # Its table has another name, too.
  expect_failures = [terraform_data.deployment, terraform_data.orders_table]
}

run "another_scope_on_the_same_state_is_rejected" {
  command = plan

  variables {
    scope = "orderonce-dev"
  }

  expect_failures = [terraform_data.deployment]
}

run "another_account_on_the_same_state_is_rejected" {
  command = plan

  variables {
    scope = "orderonce-dev-836569"
  }

  override_data {
    target = data.aws_caller_identity.current
    values = { account_id = "210987654321" }
  }

  expect_failures = [terraform_data.deployment]
}

run "another_region_on_the_same_state_is_rejected" {
  command = plan

  variables {
    scope = "orderonce-dev-836569"
  }

  override_data {
    target = data.aws_region.current
    values = { region = "us-east-1" }
  }

  expect_failures = [terraform_data.deployment]
}

run "another_queue_type_is_rejected" {
  command = plan

  variables {
    fifo = true
  }

  expect_failures = [terraform_data.queue_type]
}

run "another_queue_type_can_be_forced" {
  command = plan

  plan_options {
    replace = [terraform_data.queue_type]
  }

  variables {
    fifo = true
  }

  assert {
    condition     = aws_sqs_queue.orders.fifo_queue
    error_message = "fifo_queue: the queue is not replaced"
  }
}

run "another_table_name_is_rejected" {
  command = plan

  variables {
    orders_table_name = "orderonce-dev-orders-restored"
  }

  expect_failures = [terraform_data.orders_table]
}

run "removing_the_kms_key_is_rejected" {
  command = plan

  variables {
    kms_key_arn = null
  }

  expect_failures = [terraform_data.kms_keys]
}

run "replacing_the_kms_key_is_rejected" {
  command = plan

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001"
  }

  expect_failures = [terraform_data.kms_keys]
}

run "a_removed_kms_key_can_be_kept_as_previous" {
  command = plan

  variables {
    kms_key_arn           = null
    previous_kms_key_arns = ["arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"]
  }

  assert {
    condition = alltrue([for q in [aws_sqs_queue.orders, aws_sqs_queue.dead_letters] :
      q.kms_master_key_id == null && q.sqs_managed_sse_enabled
    ])
    error_message = "queues: new messages are still encrypted with the removed key"
  }

  assert {
    condition = alltrue([for secret in concat(
      [aws_secretsmanager_secret.stripe], aws_secretsmanager_secret.webhook,
      ) : secret.kms_key_id == "alias/aws/secretsmanager"
    ])
    error_message = "secrets: still encrypted with the removed key (the provider ignores null)"
  }

  assert {
    condition     = !aws_dynamodb_table.orders.server_side_encryption[0].enabled
    error_message = "table: still encrypted with the removed key"
  }

  assert {
    condition     = can(aws_iam_role_policy.keys["order"])
    error_message = "role: waiting messages could not be received"
  }
}

run "removing_the_kms_key_can_be_forced" {
  command = plan

  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn = null
  }

  assert {
    condition     = length(aws_iam_role_policy.keys) == 0
    error_message = "role: may still use the removed key"
  }
}

run "a_key_that_is_added_later_is_reported_until_it_is_pinned" {
  command = plan

  variables {
    kms_key_arn           = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001"
    previous_kms_key_arns = ["arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"]
  }

  expect_failures = [check.kms_keys_are_pinned]
}

run "replacing_the_pin_records_the_key" {
  command = plan

  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn           = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001"
    previous_kms_key_arns = ["arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"]
  }
}

# Last, because it applies: what operate.md does with terraform state rm and import.
run "a_restored_table_is_used_by_its_name" {
  plan_options {
    replace = [terraform_data.orders_table]
  }

  variables {
    orders_table_name = "orderonce-dev-orders-restored"
    processing        = false
  }

  assert {
    condition = (
      aws_dynamodb_table.orders.name == "orderonce-dev-orders-restored"
      && output.orders_table == "orderonce-dev-orders-restored"
    )
    error_message = "table, output: must be the restored table"
  }

  assert {
    condition = (
      aws_lambda_function.functions["order"].environment[0].variables.ORDERS_TABLE
      == "orderonce-dev-orders-restored"
    )
    error_message = "ORDERS_TABLE: must be the restored table"
  }

  assert {
    condition = (aws_dynamodb_table.orders.point_in_time_recovery[0].enabled
      && aws_dynamodb_table.orders.ttl[0].enabled
    && aws_dynamodb_table.orders.stream_enabled && aws_dynamodb_table.orders.deletion_protection_enabled)
    error_message = "a restored table has no recovery, TTL, stream or protection: the apply must add them"
  }
}
