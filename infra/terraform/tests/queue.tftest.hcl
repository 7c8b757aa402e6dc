mock_provider "aws" {
  source = "./tests/mocks"
}

# First, because pins.tf rejects it once standard queues are in the state.
run "fifo_creates_fifo_queues" {
  command = plan

  variables {
    fifo = true
  }

  assert {
    condition = alltrue([for q in [aws_sqs_queue.orders, aws_sqs_queue.dead_letters] :
      q.fifo_queue && endswith(q.name, ".fifo") && q.deduplication_scope == "messageGroup"
      && q.fifo_throughput_limit == "perMessageGroupId"
    ])
    error_message = "both queues must be FIFO, with throughput and deduplication per message group"
  }
}

run "visibility_timeout_is_six_function_timeouts" {
  command = plan

  assert {
    condition = (
      aws_sqs_queue.orders.visibility_timeout_seconds >= 6 * aws_lambda_function.functions["order"].timeout
    )
    error_message = "visibility_timeout_seconds: must be at least 6 x the function's timeout"
  }
}

run "a_shorter_visibility_timeout_is_rejected" {
  command = plan

  variables {
    visibility_timeout = 179
  }

  expect_failures = [aws_sqs_queue.orders]
}

run "a_longer_function_timeout_needs_more_visibility" {
  command = plan

  variables {
    function_timeout = 31
  }

  expect_failures = [aws_sqs_queue.orders]
}

run "max_receive_count_is_only_a_backstop" {
  assert {
    condition     = jsondecode(aws_sqs_queue.orders.redrive_policy).maxReceiveCount == 1000
    error_message = "maxReceiveCount: must be 1000, the function itself parks with a reason"
  }

  assert {
    condition = (
      jsondecode(aws_sqs_queue.orders.redrive_policy).deadLetterTargetArn == aws_sqs_queue.dead_letters.arn
    )
    error_message = "deadLetterTargetArn: must be the dead-letter queue"
  }

  assert {
    condition = (
      jsondecode(aws_sqs_queue_redrive_allow_policy.dead_letters.redrive_allow_policy).redrivePermission
      == "byQueue"
    )
    error_message = "redrivePermission: must be byQueue"
  }
}

run "dead_letters_outlive_orders" {
  command = plan

  assert {
    condition     = aws_sqs_queue.orders.message_retention_seconds == 604800
    error_message = "orders: retention must be seven days"
  }

  assert {
    condition = (
      aws_sqs_queue.dead_letters.message_retention_seconds > aws_sqs_queue.orders.message_retention_seconds
    )
    error_message = "dead letters: retention must exceed the order queue's, because messages keep their age"
  }

  assert {
    condition     = aws_sqs_queue.dead_letters.message_retention_seconds == 1209600
    error_message = "dead letters: retention must be fourteen days"
  }
}

run "every_accepted_message_can_be_parked" {
  command = plan

  assert {
    condition = (
      aws_sqs_queue.dead_letters.max_message_size >= aws_sqs_queue.orders.max_message_size + 8192
    )
    error_message = "max_message_size: no room for the attributes of a parked message"
  }
}

run "queues_long_poll_and_encrypt" {
  command = plan

  assert {
    condition = alltrue([for q in [aws_sqs_queue.orders, aws_sqs_queue.dead_letters] :
      q.receive_wait_time_seconds == 20
    ])
    error_message = "receive_wait_time_seconds: must be 20"
  }

  assert {
    condition = alltrue([for q in [aws_sqs_queue.orders, aws_sqs_queue.dead_letters] :
      q.sqs_managed_sse_enabled
    ])
    error_message = "sqs_managed_sse_enabled: messages are not encrypted"
  }
}

run "kms_key_arn_encrypts_queues_table_and_secrets" {
  command = plan

  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
  }

  assert {
    condition = alltrue([for q in [
      aws_sqs_queue.orders, aws_sqs_queue.dead_letters, aws_sqs_queue.unpublished,
      ] : q.kms_master_key_id == var.kms_key_arn
    ])
    error_message = "queues: kms_key_arn ignored"
  }

  assert {
    condition     = aws_dynamodb_table.orders.server_side_encryption[0].kms_key_arn == var.kms_key_arn
    error_message = "table: kms_key_arn ignored"
  }

  assert {
    condition = alltrue([for secret in concat(
      [aws_secretsmanager_secret.stripe], aws_secretsmanager_secret.webhook,
      ) : secret.kms_key_id == var.kms_key_arn
    ])
    error_message = "secrets: kms_key_arn ignored"
  }
}

run "standard_queues_have_no_fifo_settings" {
  command = plan

  assert {
    condition = alltrue([for q in [aws_sqs_queue.orders, aws_sqs_queue.dead_letters] :
      q.fifo_queue != true && !endswith(q.name, ".fifo")
    ])
    error_message = "a standard queue has FIFO settings"
  }
}
