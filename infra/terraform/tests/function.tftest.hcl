mock_provider "aws" {
  source = "./tests/mocks"
}

run "only_failed_orders_of_a_batch_are_redelivered" {
  command = plan

  assert {
    condition = (
      aws_lambda_event_source_mapping.orders.function_response_types == toset(["ReportBatchItemFailures"])
    )
    error_message = "function_response_types: one failed order would redeliver its batch"
  }
}

run "no_filter_deletes_messages" {
  command = plan

  assert {
    condition     = length(aws_lambda_event_source_mapping.orders.filter_criteria) == 0
    error_message = "filter_criteria: Lambda deletes messages of a queue that do not match"
  }
}

run "the_mapping_calls_the_alias" {
  assert {
    condition     = aws_lambda_event_source_mapping.orders.function_name == aws_lambda_alias.live["order"].arn
    error_message = "function_name: the mapping must invoke the alias live"
  }

  assert {
    condition = (
      aws_lambda_alias.live["order"].function_version == aws_lambda_function.functions["order"].version
    )
    error_message = "function_version: the alias must point to the published version"
  }
}

run "processing_is_on_by_default" {
  command = plan

  assert {
    condition     = aws_lambda_event_source_mapping.orders.enabled
    error_message = "enabled: the mapping is disabled"
  }
}

run "processing_can_be_stopped" {
  command = plan

  variables {
    processing = false
  }

  assert {
    condition     = !aws_lambda_event_source_mapping.orders.enabled
    error_message = "enabled: processing = false does not disable the mapping"
  }
}

run "default_concurrency_stays_below_stripe_s_rate_limit" {
  command = plan

  assert {
    condition = (
      aws_lambda_event_source_mapping.orders.batch_size == 10
      && aws_lambda_event_source_mapping.orders.scaling_config[0].maximum_concurrency == 2
    )
    error_message = "two batches of ten stay below Stripe's default rate limit, more do not"
  }

  assert {
    condition     = aws_lambda_function.functions["order"].environment[0].variables.PARALLEL_ORDERS == "10"
    error_message = "PARALLEL_ORDERS: must equal batch_size"
  }

  assert {
    condition     = aws_lambda_event_source_mapping.orders.metrics_config[0].metrics == toset(["EventCount"])
    error_message = "metrics_config: must contain EventCount"
  }
}

run "provisioned_pollers_replace_maximum_concurrency" {
  command = plan

  variables {
    provisioned_pollers = { minimum = 2, maximum = 5 }
  }

  assert {
    condition     = length(aws_lambda_event_source_mapping.orders.scaling_config) == 0
    error_message = "scaling_config: Lambda rejects it with provisioned pollers"
  }

  assert {
    condition = [for config in aws_lambda_event_source_mapping.orders.provisioned_poller_config :
      [config.minimum_pollers, config.maximum_pollers]
    ] == [[2, 5]]
    error_message = "provisioned_pollers: ignored"
  }
}

run "reserved_concurrency_below_ten_per_poller_is_rejected" {
  command = plan

  variables {
    provisioned_pollers  = { minimum = 2, maximum = 5 }
    reserved_concurrency = 49
  }

  expect_failures = [aws_lambda_event_source_mapping.orders]
}

run "the_role_gets_the_permissions_boundary" {
  command = plan

  variables {
    permissions_boundary = "arn:aws:iam::123456789012:policy/bounds"
  }

  assert {
    condition = alltrue([
      for role in concat(values(aws_iam_role.functions), [aws_iam_role.reconcile_schedule]) :
      role.permissions_boundary == var.permissions_boundary
    ])
    error_message = "permissions_boundary: ignored"
  }
}

run "reserved_concurrency_below_maximum_concurrency_is_rejected" {
  command = plan

  variables {
    maximum_concurrency  = 5
    reserved_concurrency = 4
  }

  expect_failures = [aws_lambda_event_source_mapping.orders]
}

run "reserved_concurrency_equal_to_maximum_concurrency_is_accepted" {
  command = plan

  variables {
    maximum_concurrency  = 5
    reserved_concurrency = 5
  }

  assert {
    condition     = aws_lambda_function.functions["order"].reserved_concurrent_executions == 5
    error_message = "reserved_concurrency: ignored"
  }
}

run "the_function_runs_the_built_zip" {
  command = plan

  assert {
    condition = (
      aws_lambda_function.functions["order"].runtime == "provided.al2023"
      && aws_lambda_function.functions["order"].architectures == tolist(["arm64"])
    )
    error_message = "make package builds for provided.al2023 on arm64"
  }

  assert {
    condition = (
      aws_lambda_function.functions["order"].source_code_hash == filebase64sha256("tests/packages/order.zip")
    )
    error_message = "source_code_hash: must be the hash of the zip, so that only a changed zip is deployed"
  }

  assert {
    condition = (
      endswith(aws_lambda_function.functions["order"].description, filesha256("tests/packages/order.zip"))
    )
    error_message = "description: must end with the SHA-256 of the zip"
  }

  assert {
    condition = (
      aws_lambda_function.functions["order"].memory_size == 256
      && aws_lambda_function.functions["order"].timeout == 30
    )
    error_message = "defaults: must be 256 MB and 30 s"
  }
}

run "a_missing_zip_fails_the_plan" {
  command = plan

  variables {
    package_dir = "tests/no-such-folder"
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

run "zips_of_the_processor_are_accepted" {
  command = plan

  variables {
    package_dir  = "tests/packages/amd64"
    architecture = "x86_64"
  }

  assert {
    condition     = alltrue([for f in aws_lambda_function.functions : f.architectures == tolist(["x86_64"])])
    error_message = "architectures: got another than var.architecture"
  }
}

run "logs_are_json_and_expire" {
  command = plan

  assert {
    condition     = aws_lambda_function.functions["order"].logging_config[0].log_format == "JSON"
    error_message = "log_format: must be JSON"
  }

  assert {
    condition     = aws_lambda_function.functions["order"].logging_config[0].application_log_level == "INFO"
    error_message = "application_log_level: a stricter level than INFO drops the metrics"
  }

  assert {
    condition = (
      aws_lambda_function.functions["order"].logging_config[0].log_group
      == aws_cloudwatch_log_group.functions["order"].name
    )
    error_message = "log_group: must be the module's own"
  }

  assert {
    condition     = aws_cloudwatch_log_group.functions["order"].retention_in_days == 90
    error_message = "retention_in_days: must be 90"
  }
}

run "the_environment_is_complete" {
  assert {
    condition = aws_lambda_function.functions["order"].environment[0].variables == tomap({
      ORDERS_TABLE          = "orderonce-dev-orders"
      QUEUE_URL             = aws_sqs_queue.orders.url
      DEAD_LETTER_QUEUE_URL = aws_sqs_queue.dead_letters.url
      SCOPE                 = "orderonce-dev-836569"
      STRIPE_SECRET_ARN     = aws_secretsmanager_secret.stripe.arn
      QUEUE_RETENTION       = "604800s"
      STRIPE_TIMEOUT        = "8s"
      ORDER_BUDGET          = "10s"
      PARALLEL_ORDERS       = "10"
    })
    error_message = "environment: differs from docs/reference/configuration.md"
  }
}

run "outputs_have_what_the_runbooks_need" {
  assert {
    condition = (output.event_source_mapping_uuid == aws_lambda_event_source_mapping.orders.uuid
      && output.function_role_arns == { for name, role in aws_iam_role.functions : name => role.arn }
      && output.log_groups == {
        order     = "/aws/lambda/orderonce-dev-order"
        webhook   = "/aws/lambda/orderonce-dev-webhook"
        reconcile = "/aws/lambda/orderonce-dev-reconcile"
        publish   = "/aws/lambda/orderonce-dev-publish"
      }
      && output.orders_table_arn == aws_dynamodb_table.orders.arn
    && output.orders_stream_arn == aws_dynamodb_table.orders.stream_arn)
    error_message = "outputs: one is missing or wrong"
  }
}

run "tracing_is_off_by_default" {
  command = plan

  assert {
    condition     = aws_lambda_function.functions["order"].tracing_config[0].mode == "PassThrough"
    error_message = "tracing: must be off by default"
  }
}
