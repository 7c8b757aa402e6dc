# What a plan refuses: bad variables, and what would damage a deployment (pins.tf).

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
}

# Each run has one bad value of many variables. It fails unless every one of them is refused.
run "values_that_are_too_small_or_of_another_kind_are_rejected" {
  command = plan

  variables {
    name                         = "Orders"
    scope                        = "a23456789-123456789-123456789-123"
    stripe_secret_key            = "pk_test_canary"
    stripe_secret_version        = 0
    stripe_read_key              = "sk_test_canary" # could write
    stripe_read_key_version      = -1
    stripe_refund_key            = "sk_test_canary" # could charge
    stripe_refund_key_version    = -1
    webhook_secret               = "sk_test_canary"
    webhook_secret_version       = -1
    webhook_rate_limit           = 0
    webhook_burst_limit          = 0
    webhook_memory_size          = 64
    webhook_reserved_concurrency = 0
    reconcile_minutes            = 0
    reconcile_rate               = 0
    intake_jwt                   = { issuer = "http://issuer.invalid", audience = ["shop"] }
    intake_rate_limit            = 0
    intake_burst_limit           = 5001
    intake_reserved_concurrency  = 0
    stock_hold_hours             = 0
    receipt_from                 = "Shop\nBcc: <receipts@shop.invalid>"
    receipt_identity             = "*.invalid"
    receipt_configuration_set    = "shop receipts"
    receipt_mode                 = "exactly_once"
    event_archive_days           = -1
    secret_recovery_days         = 6
    producer_arns                = ["*"]
    producer_rule_arns           = ["arn:aws:events:eu-west-1:123456789012:rule/*"]
    producer_topic_arns          = ["arn:aws:sns:eu-west-1:123456789012:*"]
    visibility_timeout           = 43201
    function_timeout             = 29
    memory_size                  = 512
    batch_size                   = 11
    maximum_concurrency          = 1
    provisioned_pollers          = { minimum = 1, maximum = 2 }
    architecture                 = "amd64"
    log_retention_days           = 1
    permissions_boundary         = "bounds"
    kms_key_arn                  = "arn:aws:kms:eu-west-1:123456789012:alias/orders"
    previous_kms_key_arns        = ["arn:aws:kms:eu-west-1:123456789012:alias/orders"]
    orders_table_name            = "my orders"
    warm_throughput              = { read = 12000, write = 1000 }
    alarms                       = "some"
    alarm_topic_arn              = "ops@example.com"
    package_s3                   = { bucket = "releases", prefix = "v0.1.0", checksums = "" }
  }

  expect_failures = [
    var.name, var.scope, var.stripe_secret_key, var.stripe_secret_version, var.stripe_read_key,
    var.stripe_read_key_version, var.stripe_refund_key, var.stripe_refund_key_version,
    var.webhook_secret, var.webhook_secret_version, var.webhook_rate_limit, var.webhook_burst_limit,
    var.webhook_memory_size, var.webhook_reserved_concurrency, var.reconcile_minutes, var.reconcile_rate,
    var.intake_jwt, var.intake_rate_limit, var.intake_burst_limit, var.intake_reserved_concurrency,
    var.stock_hold_hours, var.receipt_from, var.receipt_identity, var.receipt_configuration_set,
    var.receipt_mode, var.event_archive_days, var.secret_recovery_days, var.producer_arns,
    var.producer_rule_arns, var.producer_topic_arns, var.visibility_timeout, var.function_timeout,
    var.memory_size, var.batch_size, var.maximum_concurrency, var.provisioned_pollers, var.architecture,
    var.log_retention_days, var.permissions_boundary, var.kms_key_arn, var.previous_kms_key_arns,
    var.orders_table_name, var.warm_throughput, var.alarms, var.package_s3, var.alarm_topic_arn,
  ]
}

run "values_that_are_too_large_or_incomplete_are_rejected" {
  command = plan

  variables {
    scope                  = "Prod"
    webhook_secret         = "whsec_a\nwhsec_b\nwhsec_c"
    webhook_secret_version = 1.5
    webhook_rate_limit     = 10001
    webhook_burst_limit    = 5001
    webhook_memory_size    = 512
    reconcile_minutes      = 61
    reconcile_rate         = 101
    intake_jwt             = { issuer = "https://issuer.invalid", audience = [] }
    intake_rate_limit      = 10001
    intake_burst_limit     = 1.5
    stock_hold_hours       = 0.5
    receipt_from           = "receipts@Shop.invalid"
    event_archive_days     = 0.5
    producer_arns          = ["arn:aws:iam::123456789012:role/*"]
    producer_rule_arns     = ["arn:aws:iam::123456789012:role/shop"]
    provisioned_pollers    = { minimum = 3, maximum = 2 }
  }

  expect_failures = [
    var.scope, var.webhook_secret, var.webhook_secret_version,
    var.webhook_rate_limit, var.webhook_burst_limit, var.webhook_memory_size, var.reconcile_minutes,
    var.reconcile_rate, var.intake_jwt, var.intake_rate_limit, var.intake_burst_limit, var.stock_hold_hours,
    var.receipt_from, var.event_archive_days, var.producer_arns, var.producer_rule_arns,
    var.provisioned_pollers,
  ]
}

run "fractions_and_incomplete_values_are_rejected" {
  command = plan

  variables {
    name                      = "1st"
    create_receipts           = true
    receipt_configuration_set = null
    webhook_secret            = "whsec_a\nsk_test_b"
    reconcile_minutes         = 2.5
    reconcile_rate            = 1.5
    intake_jwt                = { issuer = "https://issuer.invalid", audience = [""] }
  }

  expect_failures = [
    var.name, var.create_receipts, var.webhook_secret, var.reconcile_minutes, var.reconcile_rate,
    var.intake_jwt,
  ]
}

run "what_is_too_long_or_has_no_length_is_rejected" {
  command = plan

  variables {
    name            = "nine-char"
    environment     = "sixteen-letters-" # 26 characters with the name, so no room for the hash
    intake_jwt      = { issuer = "https://issuer.invalid", audience = ["shop"], customer_claim = "" }
    create_receipts = true
    receipt_from    = null
  }

  expect_failures = [var.environment, var.intake_jwt, var.create_receipts]
}

run "an_environment_with_a_space_is_rejected" {
  command = plan

  variables {
    environment = "prod eu"
  }

  expect_failures = [var.environment]
}

run "a_visibility_timeout_below_six_function_timeouts_is_rejected" {
  command = plan

  variables {
    function_timeout   = 31
    visibility_timeout = 185
  }

  expect_failures = [aws_sqs_queue.queues]
}

run "reserved_concurrency_below_ten_per_poller_is_rejected" {
  command = plan

  variables {
    provisioned_pollers  = { minimum = 2, maximum = 5 }
    reserved_concurrency = 49
  }

  expect_failures = [aws_lambda_event_source_mapping.queues]
}

run "a_missing_zip_is_rejected" {
  command = plan

  variables {
    package_dir = "tests/no-such-folder"
  }

  expect_failures = [aws_lambda_function.functions]
}

run "a_zip_in_a_bucket_without_checksum_is_rejected" {
  command = plan

  variables {
    package_s3 = { bucket = "releases", checksums = "${filesha256("tests/packages/order.zip")}  another.zip" }
  }

  expect_failures = [aws_lambda_function.functions]
}

run "zips_of_another_processor_are_rejected" {
  command = plan

  variables {
    package_dir = "tests/packages/amd64"
  }

  expect_failures = [aws_lambda_function.functions]
}

# Before anything is applied, because a state of a release without pins has none.
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
    condition = terraform_data.deployment.output == {
      prefix = "orderonce-dev", scope = "orderonce-dev-836569", account = "123456789012", region = "eu-west-1"
    }
    error_message = "terraform_data.deployment: must record the deployment, so that a plan with another value fails"
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
    condition     = aws_sqs_queue.queues["orders"].fifo_queue
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

run "a_removed_kms_key_can_be_kept_as_previous" {
  command = plan

  variables {
    kms_key_arn           = null
    previous_kms_key_arns = ["arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"]
  }

  # The provider ignores null as the key of a secret, so it would keep the removed one.
  assert {
    condition = jsonencode([
      [for q in [aws_sqs_queue.queues["orders"], aws_sqs_queue.dead_letters["orders-dead"]] :
        [q.kms_master_key_id, q.sqs_managed_sse_enabled]
      ],
      distinct([for secret in concat([aws_secretsmanager_secret.stripe], aws_secretsmanager_secret.webhook) :
        secret.kms_key_id
      ]),
      aws_dynamodb_table.orders.server_side_encryption[0].enabled,
    ]) == jsonencode([[[null, true], [null, true]], ["alias/aws/secretsmanager"], false])
    error_message = "queues, secrets, table: still encrypted with the removed key"
  }

  assert {
    condition     = can(aws_iam_role_policy.keys["order"])
    error_message = "role: waiting messages could not be received"
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

run "replacing_the_pin_forgets_and_records_keys" {
  command = plan

  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001"
  }

  assert {
    condition     = jsondecode(aws_iam_role_policy.keys["order"].policy).Statement[0].Resource == [var.kms_key_arn]
    error_message = "role: may still use the removed key"
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
    condition = [
      aws_dynamodb_table.orders.name, output.orders_table,
      aws_lambda_function.functions["order"].environment[0].variables.ORDERS_TABLE,
    ] == [for n in range(3) : "orderonce-dev-orders-restored"]
    error_message = "table, output, ORDERS_TABLE: must be the restored table"
  }

  assert {
    condition = (aws_dynamodb_table.orders.point_in_time_recovery[0].enabled
      && aws_dynamodb_table.orders.ttl[0].enabled
    && aws_dynamodb_table.orders.stream_enabled && aws_dynamodb_table.orders.deletion_protection_enabled)
    error_message = "a restored table has no recovery, TTL, stream or protection: the apply must add them"
  }
}
