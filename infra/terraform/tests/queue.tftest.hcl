# Mocked values have the form that AWS gives them, because the provider parses ARNs and
# policies even in a test. The mocks are repeated in each file, because OpenTofu has no
# mock_provider that reads them from a folder.
mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }

  mock_data "aws_partition" {
    defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
  }

  mock_data "aws_region" {
    defaults = { region = "eu-west-1" }
  }

  mock_resource "aws_sqs_queue" {
    defaults = {
      arn = "arn:aws:sqs:eu-west-1:123456789012:queue"
      url = "https://sqs.eu-west-1.amazonaws.com/123456789012/queue"
    }
  }

  mock_resource "aws_dynamodb_table" {
    defaults = {
      arn        = "arn:aws:dynamodb:eu-west-1:123456789012:table/table"
      stream_arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/table/stream/2026-01-01T00:00:00.000"
    }
  }

  mock_resource "aws_secretsmanager_secret" {
    defaults = {
      id  = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
      arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
    }
  }

  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/role" }
  }

  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:group" }
  }

  mock_resource "aws_lambda_function" {
    defaults = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:function", version = "7" }
  }

  mock_resource "aws_lambda_alias" {
    defaults = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:function:live" }
  }

  mock_resource "aws_lambda_event_source_mapping" {
    defaults = { uuid = "00000000-0000-4000-8000-000000000000" }
  }
}

variables {
  package_dir       = "tests/packages"
  stripe_secret_key = "sk_test_canary"
}

# First, because pins.tf refuses it once standard queues are in the state.
run "the_fifo_variant_plans" {
  command = plan

  variables {
    fifo = true
  }

  assert {
    condition = alltrue([for q in [aws_sqs_queue.orders, aws_sqs_queue.dead_letters] :
      q.fifo_queue && endswith(q.name, ".fifo") && q.deduplication_scope == "messageGroup" && q.fifo_throughput_limit == "perMessageGroupId"
    ])
    error_message = "Both queues have to be FIFO queues, with one order's trouble kept to its group."
  }
}

run "a_slow_batch_is_not_delivered_twice" {
  command = plan

  assert {
    condition     = aws_sqs_queue.orders.visibility_timeout_seconds >= 6 * aws_lambda_function.functions["order"].timeout
    error_message = "The visibility time-out is less than six times the function's."
  }
}

run "less_visibility_is_refused" {
  command = plan

  variables {
    visibility_timeout = 179
  }

  expect_failures = [aws_sqs_queue.orders]
}

run "a_longer_function_needs_more_visibility" {
  command = plan

  variables {
    function_timeout = 31
  }

  expect_failures = [aws_sqs_queue.orders]
}

run "the_queue_parks_only_what_the_code_cannot" {
  assert {
    condition     = jsondecode(aws_sqs_queue.orders.redrive_policy).maxReceiveCount == 1000
    error_message = "maxReceiveCount is ${jsondecode(aws_sqs_queue.orders.redrive_policy).maxReceiveCount}, want 1000: the code parks with a reason."
  }

  assert {
    condition     = jsondecode(aws_sqs_queue.orders.redrive_policy).deadLetterTargetArn == aws_sqs_queue.dead_letters.arn
    error_message = "What the queue gives up does not go to the dead-letter queue."
  }

  assert {
    condition     = jsondecode(aws_sqs_queue_redrive_allow_policy.dead_letters.redrive_allow_policy).redrivePermission == "byQueue"
    error_message = "Any queue of the account may use the dead-letter queue."
  }
}

run "nothing_is_lost_before_somebody_looked" {
  command = plan

  assert {
    condition     = aws_sqs_queue.orders.message_retention_seconds == 604800
    error_message = "Orders are kept for ${aws_sqs_queue.orders.message_retention_seconds} s, want seven days."
  }

  assert {
    condition     = aws_sqs_queue.dead_letters.message_retention_seconds > aws_sqs_queue.orders.message_retention_seconds
    error_message = "A dead letter keeps its age: the dead-letter queue must keep messages longer than the order queue."
  }

  assert {
    condition     = aws_sqs_queue.dead_letters.message_retention_seconds == 1209600
    error_message = "Dead letters are kept for ${aws_sqs_queue.dead_letters.message_retention_seconds} s, want fourteen days."
  }
}

run "whatever_is_accepted_can_be_parked" {
  command = plan

  assert {
    condition     = aws_sqs_queue.dead_letters.max_message_size >= aws_sqs_queue.orders.max_message_size + 8192
    error_message = "A message that fills the order queue's limit has no room for the attributes of a parked one."
  }
}

run "receives_wait_and_messages_are_encrypted" {
  command = plan

  assert {
    condition     = alltrue([for q in [aws_sqs_queue.orders, aws_sqs_queue.dead_letters] : q.receive_wait_time_seconds == 20])
    error_message = "Long polling is off."
  }

  assert {
    condition     = alltrue([for q in [aws_sqs_queue.orders, aws_sqs_queue.dead_letters] : q.sqs_managed_sse_enabled])
    error_message = "Messages lie unencrypted."
  }
}

run "a_key_of_the_customer_encrypts_everything" {
  command = plan

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
  }

  assert {
    condition     = alltrue([for q in [aws_sqs_queue.orders, aws_sqs_queue.dead_letters] : q.kms_master_key_id == var.kms_key_arn])
    error_message = "A queue does not use kms_key_arn."
  }

  assert {
    condition     = aws_dynamodb_table.orders.server_side_encryption[0].kms_key_arn == var.kms_key_arn
    error_message = "The table does not use kms_key_arn."
  }

  assert {
    condition     = aws_secretsmanager_secret.stripe.kms_key_id == var.kms_key_arn
    error_message = "The secret does not use kms_key_arn."
  }
}

run "the_standard_variant_has_no_fifo_settings" {
  command = plan

  assert {
    condition     = alltrue([for q in [aws_sqs_queue.orders, aws_sqs_queue.dead_letters] : q.fifo_queue != true && !endswith(q.name, ".fifo")])
    error_message = "A standard queue is FIFO."
  }
}
