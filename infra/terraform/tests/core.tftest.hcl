# What is always there: queues, table, functions and their triggers.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  webhook_secret_version = 3
}

# First, because pins.tf rejects it once standard queues are in the state.
run "fifo_creates_fifo_queues" {
  command = plan

  variables {
    fifo = true
  }

  assert {
    condition = alltrue([for q in [
      aws_sqs_queue.queues["orders"], aws_sqs_queue.dead_letters["orders-dead"],
      aws_sqs_queue.queues["refunds"], aws_sqs_queue.dead_letters["refunds-dead"],
      ] : q.fifo_queue && endswith(q.name, ".fifo") && q.deduplication_scope == "messageGroup"
      && q.fifo_throughput_limit == "perMessageGroupId"
    ])
    error_message = "the queues must be FIFO, with throughput and deduplication per message group"
  }

  assert {
    condition = (
      aws_sqs_queue.queues["orders"].content_based_deduplication
      && aws_sqs_queue.dead_letters["orders-dead"].content_based_deduplication == false
    )
    error_message = "content_based_deduplication: two parked messages may have the same body"
  }
}

run "every_name_contains_the_environment" {
  command = plan

  variables {
    environment               = "other"
    create_example_subscriber = true
    create_intake             = true
    intake_jwt                = { issuer = "https://issuer.invalid", audience = ["shop"] }
    stock_tracking            = true
    create_receipts           = true
    receipt_from              = "receipts@shop.invalid"
    receipt_configuration_set = "shop-receipts"
  }

  assert {
    condition = alltrue([for name in concat(
      values(aws_sqs_queue.queues)[*].name, values(aws_sqs_queue.dead_letters)[*].name,
      values(aws_lambda_function.functions)[*].function_name, values(aws_iam_role.functions)[*].name,
      [for group in aws_cloudwatch_log_group.functions : trimprefix(group.name, "/aws/lambda/")],
      values(aws_cloudwatch_metric_alarm.alarms)[*].alarm_name, values(aws_cloudwatch_event_rule.receipts)[*].name,
      [
        aws_dynamodb_table.orders.name, aws_dynamodb_table.stock[0].name, aws_dynamodb_table.receipts[0].name,
        aws_secretsmanager_secret.stripe.name, aws_secretsmanager_secret.webhook[0].name,
        aws_apigatewayv2_api.webhook[0].name, aws_apigatewayv2_api.orders[0].name,
        aws_apigatewayv2_authorizer.intake[0].name, aws_cloudwatch_dashboard.orders.dashboard_name,
        trimprefix(aws_cloudwatch_log_group.webhook_access[0].name, "/aws/vendedlogs/"),
        trimprefix(aws_cloudwatch_log_group.intake_access[0].name, "/aws/vendedlogs/"),
        aws_cloudwatch_event_bus.orders.name, aws_cloudwatch_event_archive.orders.name,
        aws_cloudwatch_event_rule.paid[0].name,
      ],
    ) : startswith(name, "orderonce-other")])
    error_message = "a name lacks the environment: two environments in one account would collide"
  }
}

run "the_default_scope_differs_between_accounts" {
  command = plan

  override_data {
    target = data.aws_caller_identity.current
    values = { account_id = "210987654321" }
  }

  assert {
    condition     = output.scope == "orderonce-dev-e3ac8a"
    error_message = "scope: got ${output.scope}, two accounts may share a Stripe account"
  }
}

run "the_default_scope_differs_between_regions" {
  command = plan

  override_data {
    target = data.aws_region.current
    values = { region = "us-east-1" }
  }

  assert {
    condition     = output.scope == "orderonce-dev-eb805c"
    error_message = "scope: got ${output.scope}, two regions may share a Stripe account"
  }
}

run "a_given_scope_is_used_unchanged" {
  command = plan

  variables {
    scope = "orderonce-dev"
  }

  assert {
    condition = (
      output.scope == "orderonce-dev"
      && aws_lambda_function.functions["order"].environment[0].variables.SCOPE == "orderonce-dev"
    )
    error_message = "scope: got ${output.scope}"
  }
}

run "without_variables_no_optional_part_exists" {
  assert {
    condition = alltrue([for resources in [
      aws_lambda_function.functions, aws_lambda_alias.live, aws_iam_role.functions,
      aws_iam_role_policy.functions, aws_cloudwatch_log_group.functions,
    ] : keys(resources) == ["order", "publish", "reconcile", "refund", "webhook"]])
    error_message = "functions: a part of an optional function exists, or one of another is missing"
  }

  assert {
    condition = (
      keys(aws_sqs_queue.queues) == ["orders", "refunds"]
      && keys(aws_sqs_queue.dead_letters) == ["orders-dead", "refunds-dead", "unpublished"]
      && keys(aws_sqs_queue_policy.queues) == ["orders", "orders-dead", "refunds", "refunds-dead", "unpublished"]
      && keys(aws_sqs_queue_redrive_allow_policy.dead_letters) == ["orders-dead", "refunds-dead"]
      && keys(aws_lambda_event_source_mapping.queues) == ["orders", "refunds"]
    )
    error_message = "queues: a queue of an optional part exists, or another is missing"
  }

  assert {
    condition = sum([for resources in [
      values(aws_apigatewayv2_route.intake), values(aws_lambda_permission.intake), aws_apigatewayv2_api.orders,
      aws_apigatewayv2_integration.intake, aws_apigatewayv2_authorizer.intake, aws_apigatewayv2_stage.orders,
      aws_cloudwatch_log_group.intake_access, aws_dynamodb_table.stock, aws_dynamodb_table.receipts,
      values(aws_cloudwatch_event_rule.receipts), values(aws_cloudwatch_event_target.receipts),
      aws_cloudwatch_event_rule.paid, aws_cloudwatch_event_target.paid, aws_iam_policy.operator_read,
      aws_iam_policy.operator_repair, values(aws_iam_role_policy.keys),
    ] : length(resources)]) == 0
    error_message = "an optional part must be off by default"
  }

  assert {
    condition = alltrue([for value in [
      output.intake_url, output.intake_api_id, output.intake_caller_policy, output.intake_access_log_group,
      output.stock_table, output.receipts_table, output.receipt_queue_url, output.receipt_dead_letter_queue_url,
      output.paid_queue_url, output.operator_read_policy_arn, output.operator_repair_policy_arn,
    ] : value == null]) && !can(regex("STOCK_TABLE|RECEIPTS_TABLE", output.operator_environment))
    error_message = "outputs: must be null without the part"
  }

  assert {
    condition = !can(regex("Stock|LoadDeclinedOrders|WriteTraces", jsonencode(
      values(aws_iam_role_policy.functions)[*].policy
    )))
    error_message = "a policy has a statement on what does not exist"
  }
}

# docs/reference/configuration.md lists these. No function has another one's.
run "the_environments_are_complete" {
  assert {
    condition = jsonencode({ for name, function in aws_lambda_function.functions :
      name => function.environment[0].variables
      }) == jsonencode({
      order = {
        ORDERS_TABLE          = "orderonce-dev-orders"
        QUEUE_URL             = aws_sqs_queue.queues["orders"].url
        DEAD_LETTER_QUEUE_URL = aws_sqs_queue.dead_letters["orders-dead"].url
        SCOPE                 = "orderonce-dev-836569"
        STRIPE_SECRET_ARN     = aws_secretsmanager_secret.stripe.arn
        QUEUE_RETENTION       = "604800s"
        STRIPE_TIMEOUT        = "8s"
        ORDER_BUDGET          = "10s"
        PARALLEL_ORDERS       = "10"
      }
      refund = {
        ORDERS_TABLE          = "orderonce-dev-orders"
        QUEUE_URL             = aws_sqs_queue.queues["refunds"].url
        DEAD_LETTER_QUEUE_URL = aws_sqs_queue.dead_letters["refunds-dead"].url
        SCOPE                 = "orderonce-dev-836569"
        STRIPE_SECRET_ARN     = aws_secretsmanager_secret.stripe.arn
      }
      webhook = {
        ORDERS_TABLE       = "orderonce-dev-orders"
        SCOPE              = "orderonce-dev-836569"
        STRIPE_SECRET_ARN  = aws_secretsmanager_secret.stripe.arn
        STRIPE_TIMEOUT     = "5s"
        WEBHOOK_SECRET_ARN = aws_secretsmanager_secret.webhook[0].arn
      }
      reconcile = {
        ORDERS_TABLE      = "orderonce-dev-orders"
        SCOPE             = "orderonce-dev-836569"
        STRIPE_SECRET_ARN = aws_secretsmanager_secret.stripe.arn
        STRIPE_TIMEOUT    = "8s"
        STRIPE_RATE       = "10"
      }
      publish = { EVENT_BUS = "orderonce-dev-orders", SCOPE = "orderonce-dev-836569" }
    })
    error_message = "environment: differs from docs/reference/configuration.md"
  }
}

# Memory, timeout, start of the description and zip. Both secrets are read at a cold start, so a
# rotation must publish the functions that read them: their descriptions have the versions.
run "each_function_runs_its_zip_with_these_settings" {
  assert {
    condition = { for name, function in aws_lambda_function.functions : name => join(" ", [
      function.memory_size, function.timeout, function.description, function.source_code_hash,
      ]) } == { for name, settings in {
      order     = "256 30 Charges each order exactly once. Key 1."
      refund    = "256 30 Gives money of orders back once. Key 1."
      webhook   = "256 15 Settles orders after Stripe's webhooks. Key 1. Webhook secret 3."
      reconcile = "256 55 Settles orders that wait. Key 1."
      publish   = "256 30 Publishes the events of orders."
      } : name => join(" ", [
        settings, "Zip", filesha256("tests/packages/${name}.zip"), filebase64sha256("tests/packages/${name}.zip"),
    ]) }
    error_message = "functions: differ from this list"
  }

  assert {
    condition = alltrue([for name, function in aws_lambda_function.functions : (
      function.function_name == "orderonce-dev-${name}" && function.runtime == "provided.al2023"
      && function.architectures == tolist(["arm64"]) && function.reserved_concurrent_executions == null
      && function.tracing_config[0].mode == "PassThrough"
    )])
    error_message = "functions: must be arm64, without reserved concurrency and tracing"
  }

  assert {
    condition = alltrue([for name, function in aws_lambda_function.functions : (
      function.logging_config[0].log_format == "JSON" && function.logging_config[0].application_log_level == "INFO"
      && function.logging_config[0].log_group == "/aws/lambda/orderonce-dev-${name}"
      && aws_cloudwatch_log_group.functions[name].name == "/aws/lambda/orderonce-dev-${name}"
      && aws_cloudwatch_log_group.functions[name].retention_in_days == 90
    )])
    error_message = "logs: must be JSON in a group of their own and expire; a stricter level drops the metrics"
  }

  assert {
    condition = alltrue([for name, alias in aws_lambda_alias.live : (
      alias.name == "live" && alias.function_name == "orderonce-dev-${name}"
      && alias.function_version == aws_lambda_function.functions[name].version
    )])
    error_message = "alias: must point to the published version of its function"
  }

  # A thin event reads Stripe twice.
  assert {
    condition = 2 * tonumber(trimsuffix(
      aws_lambda_function.functions["webhook"].environment[0].variables.STRIPE_TIMEOUT, "s",
    )) <= aws_lambda_function.functions["webhook"].timeout - 5
    error_message = "webhook: STRIPE_TIMEOUT: two calls must leave 5 s to the table"
  }
}

run "settings_of_functions_can_be_changed" {
  variables {
    package_dir                  = "tests/packages/amd64"
    architecture                 = "x86_64"
    maximum_concurrency          = 5
    reserved_concurrency         = 5
    webhook_memory_size          = 128
    webhook_reserved_concurrency = 3
    webhook_burst_limit          = 20
    webhook_rate_limit           = 10
    reconcile_minutes            = 1
    reconcile_rate               = 100
    processing                   = false
    event_archive_days           = 0
  }

  assert {
    condition     = alltrue([for f in aws_lambda_function.functions : f.architectures == tolist(["x86_64"])])
    error_message = "architectures: got another than var.architecture"
  }

  assert {
    condition = jsonencode({ for name, f in aws_lambda_function.functions : name => [
      f.memory_size, f.reserved_concurrent_executions,
      ] }) == jsonencode({
      order = [256, 5], publish = [256, null], reconcile = [256, null], refund = [256, null], webhook = [128, 3],
    })
    error_message = "memory_size, reserved_concurrency: must apply to their function only"
  }

  assert {
    condition = (
      aws_apigatewayv2_stage.webhook[0].default_route_settings[0].throttling_burst_limit == 20
      && aws_apigatewayv2_stage.webhook[0].default_route_settings[0].throttling_rate_limit == 10
    )
    error_message = "webhook_burst_limit, webhook_rate_limit: ignored"
  }

  assert {
    condition = (
      aws_scheduler_schedule.reconcile.schedule_expression == "rate(1 minutes)"
      && aws_lambda_function_event_invoke_config.reconcile.maximum_event_age_in_seconds == 60
      && aws_lambda_function.functions["reconcile"].environment[0].variables.STRIPE_RATE == "100"
    )
    error_message = "reconcile_minutes, reconcile_rate: ignored"
  }

  assert {
    condition     = !anytrue(values(aws_lambda_event_source_mapping.queues)[*].enabled)
    error_message = "enabled: processing = false does not disable both mappings"
  }

  assert {
    condition     = aws_cloudwatch_event_archive.orders.retention_days == 36500
    error_message = "retention_days: the provider would not send 0, so 90 days would stay"
  }
}

run "sqs_parks_messages_only_as_a_backstop_and_keeps_dead_letters_for_longer" {
  assert {
    condition = { for name, queue in aws_sqs_queue.queues : name => jsondecode(queue.redrive_policy) } == {
      for name in ["orders", "refunds"] : name => {
        deadLetterTargetArn = aws_sqs_queue.dead_letters["${name}-dead"].arn
        maxReceiveCount     = 1000
      }
    }
    error_message = "redrive_policy: must be 1000, the function itself parks with a reason"
  }

  assert {
    condition = { for name, policy in aws_sqs_queue_redrive_allow_policy.dead_letters :
      name => jsondecode(policy.redrive_allow_policy)
      } == { for name in ["orders", "refunds"] : "${name}-dead" => {
        redrivePermission = "byQueue"
        sourceQueueArns   = [aws_sqs_queue.queues[name].arn]
    } }
    error_message = "redrive_allow_policy: must name the queue of the same messages alone"
  }

  assert {
    condition = jsonencode({ for name, q in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) : name => [
      q.name, q.message_retention_seconds, q.sqs_managed_sse_enabled, q.fifo_queue == true,
      ] }) == jsonencode({
      orders       = ["orderonce-dev-orders", 604800, true, false]
      orders-dead  = ["orderonce-dev-orders-dead", 1209600, true, false] # messages keep their age
      refunds      = ["orderonce-dev-refunds", 604800, true, false]
      refunds-dead = ["orderonce-dev-refunds-dead", 1209600, true, false]
      unpublished  = ["orderonce-dev-unpublished", 1209600, true, false]
    })
    error_message = "queues: must be standard, encrypted, and keep dead letters for 14 days, the maximum"
  }

  assert {
    condition = jsonencode([for q in [
      aws_sqs_queue.queues["orders"], aws_sqs_queue.dead_letters["orders-dead"],
      aws_sqs_queue.queues["refunds"], aws_sqs_queue.dead_letters["refunds-dead"],
      ] : [q.receive_wait_time_seconds, q.max_message_size]
    ]) == jsonencode([[20, 524288], [20, 1048576], [20, 524288], [20, 1048576]])
    error_message = "queues: must poll for 20 s; the attributes of a parked message need room"
  }

  assert {
    condition     = alltrue([for queue in aws_sqs_queue.queues : queue.visibility_timeout_seconds == 180])
    error_message = "visibility_timeout_seconds: must be 6 x the function's timeout"
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
    condition = alltrue([for key in concat(
      values(aws_sqs_queue.queues)[*].kms_master_key_id, values(aws_sqs_queue.dead_letters)[*].kms_master_key_id,
      [aws_dynamodb_table.orders.server_side_encryption[0].kms_key_arn, aws_secretsmanager_secret.stripe.kms_key_id],
      aws_secretsmanager_secret.webhook[*].kms_key_id,
    ) : key == var.kms_key_arn])
    error_message = "kms_key_arn: ignored by a queue, the table or a secret"
  }
}

run "only_failed_orders_of_a_batch_are_redelivered_and_no_filter_deletes_messages" {
  assert {
    condition = (
      alltrue([for mapping in aws_lambda_event_source_mapping.queues :
        mapping.function_response_types == toset(["ReportBatchItemFailures"]) && length(mapping.filter_criteria) == 0
      ])
    )
    error_message = "mapping: one failed order would redeliver its batch, or Lambda deletes what does not match"
  }

  assert {
    condition = (
      alltrue([for function, queue in { order = "orders", refund = "refunds" } : (
        aws_lambda_event_source_mapping.queues[queue].event_source_arn == aws_sqs_queue.queues[queue].arn
        && aws_lambda_event_source_mapping.queues[queue].function_name == aws_lambda_alias.live[function].arn
        && aws_lambda_event_source_mapping.queues[queue].enabled
        && aws_lambda_event_source_mapping.queues[queue].metrics_config[0].metrics == toset(["EventCount"])
      )])
    )
    error_message = "mapping: must invoke the alias live with its queue"
  }

  assert {
    condition = (
      alltrue([for mapping in aws_lambda_event_source_mapping.queues :
        mapping.batch_size == 10 && mapping.scaling_config[0].maximum_concurrency == 2
      ])
    )
    error_message = "two batches of ten of each stay below Stripe's default rate limit, more do not"
  }
}

run "provisioned_pollers_replace_maximum_concurrency" {
  command = plan

  variables {
    provisioned_pollers = { minimum = 2, maximum = 5 }
  }

  assert {
    condition = length(aws_lambda_event_source_mapping.queues["orders"].scaling_config) == 0 && [
      for config in aws_lambda_event_source_mapping.queues["orders"].provisioned_poller_config :
      [config.minimum_pollers, config.maximum_pollers]
    ] == [[2, 5]]
    error_message = "provisioned_pollers: ignored, or beside scaling_config, which Lambda rejects"
  }
}

run "the_table_is_protected_and_only_its_event_rows_expire" {
  assert {
    condition = (
      aws_dynamodb_table.orders.deletion_protection_enabled
      && aws_dynamodb_table.orders.point_in_time_recovery[0].enabled
      && aws_dynamodb_table.orders.billing_mode == "PAY_PER_REQUEST"
      && !aws_dynamodb_table.orders.server_side_encryption[0].enabled
    )
    error_message = "table: must be protected, its rows prevent duplicate charges"
  }

  assert {
    condition = (
      aws_dynamodb_table.orders.ttl[0].enabled && aws_dynamodb_table.orders.ttl[0].attribute_name == "expiresAt"
      && aws_dynamodb_table.orders.stream_enabled && aws_dynamodb_table.orders.stream_view_type == "NEW_IMAGE"
    )
    error_message = "ttl, stream: must be expiresAt, which only event rows have, and new images"
  }
}

run "a_new_table_gets_the_warm_throughput" {
  command = plan

  plan_options {
    replace = [aws_dynamodb_table.orders]
  }

  variables {
    warm_throughput = { read = 12000, write = 8000 }
  }

  assert {
    condition = (
      aws_dynamodb_table.orders.warm_throughput[0].write_units_per_second == 8000
      && aws_dynamodb_table.orders.warm_throughput[0].read_units_per_second == 12000
    )
    error_message = "warm_throughput: ignored"
  }
}

run "warm_throughput_never_replaces_a_table" {
  command = plan

  variables {
    warm_throughput = { read = 12000, write = 4000 }
  }

  assert {
    condition     = length(aws_dynamodb_table.orders.warm_throughput) == 0
    error_message = "warm_throughput: changing it would replace the table"
  }
}

run "the_webhooks_api_has_one_route_that_alone_invokes_the_function" {
  assert {
    condition = [
      aws_apigatewayv2_api.webhook[0].protocol_type, aws_apigatewayv2_route.webhook[0].route_key,
      aws_apigatewayv2_route.webhook[0].target, aws_apigatewayv2_stage.webhook[0].name, output.webhook_url,
      ] == [
      "HTTP", "POST /stripe/webhook", "integrations/${aws_apigatewayv2_integration.webhook[0].id}",
      "$default", "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com/stripe/webhook",
    ]
    error_message = "API: must send POST /stripe/webhook to the integration, at a URL without a stage"
  }

  assert {
    condition = alltrue([for part in [
      aws_apigatewayv2_integration.webhook[0], aws_apigatewayv2_route.webhook[0],
      aws_apigatewayv2_stage.webhook[0],
    ] : part.api_id == "a1b2c3d4e5"]) && aws_apigatewayv2_stage.webhook[0].auto_deploy
    error_message = "api_id: a part belongs to another API, or is not deployed"
  }

  assert {
    condition = (
      aws_apigatewayv2_integration.webhook[0].integration_uri == aws_lambda_alias.live["webhook"].invoke_arn
      && aws_apigatewayv2_integration.webhook[0].integration_type == "AWS_PROXY"
      && aws_apigatewayv2_integration.webhook[0].integration_method == "POST"
      && aws_apigatewayv2_integration.webhook[0].payload_format_version == "2.0"
    )
    error_message = "integration: must invoke the alias live, which reads payload format 2.0 only"
  }

  assert {
    condition = [for p in aws_lambda_permission.webhook :
      [p.statement_id, p.principal, p.action, p.function_name, p.qualifier, p.source_arn]
      ] == [[
        "StripeWebhook", "apigateway.amazonaws.com", "lambda:InvokeFunction", "orderonce-dev-webhook", "live",
        "arn:aws:execute-api:eu-west-1:123456789012:a1b2c3d4e5/$default/POST/stripe/webhook",
    ]]
    error_message = "permission: must allow API Gateway to invoke the alias for this route, and nothing else"
  }

  assert {
    condition = sort(values(jsondecode(aws_apigatewayv2_stage.webhook[0].access_log_settings[0].format))) == sort([
      "$context.requestId", "$context.requestTime", "$context.identity.sourceIp", "$context.routeKey",
      "$context.status", "$context.responseLatency", "$context.integrationStatus",
      "$context.integrationLatency", "$context.integrationErrorMessage",
    ])
    error_message = "access logs: another field may contain customer data or a signature"
  }

  assert {
    condition = (
      aws_apigatewayv2_stage.webhook[0].access_log_settings[0].destination_arn
      == aws_cloudwatch_log_group.webhook_access[0].arn
      && aws_cloudwatch_log_group.webhook_access[0].name == "/aws/vendedlogs/orderonce-dev-webhook-access"
      && aws_cloudwatch_log_group.webhook_access[0].retention_in_days == 90
    )
    error_message = "access logs: must go to their own group, and expire"
  }
}

run "the_schedule_invokes_the_alias_every_five_minutes_and_repeats_nothing" {
  assert {
    condition = [
      for s in [aws_scheduler_schedule.reconcile] : [
        s.name, s.state, s.schedule_expression, s.flexible_time_window[0].mode, s.target[0].input,
        s.target[0].arn, s.target[0].role_arn,
      ]
      ] == [[
        "orderonce-dev-reconcile", "ENABLED", "rate(5 minutes)", "OFF", "{}",
        aws_lambda_alias.live["reconcile"].arn, aws_iam_role.reconcile_schedule.arn,
    ]]
    error_message = "schedule: must invoke the alias live with an empty object, as the role of the schedule"
  }

  assert {
    condition = (
      aws_scheduler_schedule.reconcile.target[0].retry_policy[0].maximum_retry_attempts == 0
      && aws_lambda_function_event_invoke_config.reconcile.maximum_retry_attempts == 0
      && aws_lambda_function_event_invoke_config.reconcile.function_name == "orderonce-dev-reconcile"
      && aws_lambda_function_event_invoke_config.reconcile.qualifier == "live"
      && aws_lambda_function_event_invoke_config.reconcile.maximum_event_age_in_seconds == 300
    )
    error_message = "a failed event must not be repeated, and end when the next one is due: the next run continues"
  }

  assert {
    condition     = aws_lambda_function.functions["reconcile"].timeout < 60
    error_message = "timeout: must end before the next run of the shortest schedule"
  }
}

run "an_event_is_dropped_after_five_minutes_at_the_latest" {
  command = plan

  variables {
    reconcile_minutes = 60
  }

  assert {
    condition     = aws_lambda_function_event_invoke_config.reconcile.maximum_event_age_in_seconds == 300
    error_message = "maximum_event_age_in_seconds: must be at most 300"
  }
}

run "events_are_published_in_order_and_none_is_dropped_in_silence" {
  assert {
    condition = (
      aws_lambda_event_source_mapping.publish.event_source_arn == aws_dynamodb_table.orders.stream_arn
      && aws_lambda_event_source_mapping.publish.function_name == aws_lambda_alias.live["publish"].arn
      && aws_lambda_event_source_mapping.publish.enabled
      && aws_lambda_event_source_mapping.publish.starting_position == "TRIM_HORIZON"
      && aws_lambda_event_source_mapping.publish.batch_size == 100
      && aws_lambda_event_source_mapping.publish.parallelization_factor == 1
    )
    error_message = "mapping: must invoke the alias live with the table's stream, from its beginning, in order"
  }

  assert {
    condition = (
      aws_lambda_event_source_mapping.publish.function_response_types == toset(["ReportBatchItemFailures"])
      && aws_lambda_event_source_mapping.publish.bisect_batch_on_function_error
      && aws_lambda_event_source_mapping.publish.maximum_retry_attempts == -1
    )
    error_message = "a failure would repeat its batch, or an outage drops events"
  }

  assert {
    condition = (
      aws_lambda_event_source_mapping.publish.maximum_record_age_in_seconds == 22 * 3600
      && [for destination in aws_lambda_event_source_mapping.publish.destination_config :
        [for on_failure in destination.on_failure : on_failure.destination_arn]
      ] == [[aws_sqs_queue.dead_letters["unpublished"].arn]]
    )
    error_message = "must end before the stream drops a record, at 24 hours, and report it"
  }

  assert {
    condition = [for criteria in aws_lambda_event_source_mapping.publish.filter_criteria :
      [for filter in criteria.filter : jsondecode(filter.pattern)]
      ] == [[{
        eventName = ["INSERT"]
        dynamodb  = { Keys = { sk = { S = [{ prefix = "event#" }] } } }
    }]]
    error_message = "filter_criteria: must be inserted rows whose sk begins with event#"
  }

  assert {
    condition = (
      aws_cloudwatch_event_bus.orders.name == "orderonce-dev-orders"
      && aws_cloudwatch_event_bus.orders.kms_key_identifier == null
      && aws_cloudwatch_event_archive.orders.event_source_arn == output.event_bus_arn
      && aws_cloudwatch_event_archive.orders.retention_days == 90
      && aws_cloudwatch_event_archive.orders.event_pattern == null
    )
    error_message = "bus: must have the key that AWS owns; the archive must keep every event for 90 days"
  }
}

run "outputs_have_what_guides_and_runbooks_need" {
  assert {
    condition = jsonencode([
      output.event_source_mapping_uuid, output.orders_table_arn, output.orders_stream_arn,
      output.order_queue_arn, output.order_queue_url, output.dead_letter_queue_arn, output.dead_letter_queue_url,
      output.webhook_function_name, output.webhook_log_group, output.webhook_access_log_group,
      output.webhook_secret_arn, output.reconcile_function_name, output.reconcile_log_group,
      output.publish_function_name, output.publish_log_group, output.event_bus_name, output.event_bus_arn,
      output.event_archive_arn, output.event_source, output.unpublished_queue_url,
      output.refund_queue_url, output.refund_dead_letter_queue_url,
      ]) == jsonencode([
      aws_lambda_event_source_mapping.queues["orders"].uuid, aws_dynamodb_table.orders.arn,
      aws_dynamodb_table.orders.stream_arn, aws_sqs_queue.queues["orders"].arn,
      aws_sqs_queue.queues["orders"].url, aws_sqs_queue.dead_letters["orders-dead"].arn,
      aws_sqs_queue.dead_letters["orders-dead"].url,
      "orderonce-dev-webhook", "/aws/lambda/orderonce-dev-webhook",
      "/aws/vendedlogs/orderonce-dev-webhook-access", aws_secretsmanager_secret.webhook[0].arn,
      "orderonce-dev-reconcile", "/aws/lambda/orderonce-dev-reconcile", "orderonce-dev-publish",
      "/aws/lambda/orderonce-dev-publish", "orderonce-dev-orders", aws_cloudwatch_event_bus.orders.arn,
      "arn:aws:events:eu-west-1:123456789012:archive/orders", "orderonce.orderonce-dev-836569",
      aws_sqs_queue.dead_letters["unpublished"].url, aws_sqs_queue.queues["refunds"].url,
      aws_sqs_queue.dead_letters["refunds-dead"].url,
    ])
    error_message = "outputs: one is missing or wrong"
  }

  assert {
    condition = (
      output.function_aliases == { for name, alias in aws_lambda_alias.live : name => alias.arn }
      && output.function_role_arns == { for name, role in aws_iam_role.functions : name => role.arn }
      && output.log_groups == { for name in ["order", "publish", "reconcile", "refund", "webhook"] :
        name => "/aws/lambda/orderonce-dev-${name}"
      }
    )
    error_message = "outputs: one of the functions is missing or wrong"
  }
}

run "without_webhooks_all_of_theirs_is_removed_and_the_rest_runs" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    create_webhook = false
    kms_key_arn    = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
  }

  assert {
    condition = sum([for resources in [
      aws_apigatewayv2_api.webhook, aws_apigatewayv2_integration.webhook, aws_apigatewayv2_route.webhook,
      aws_apigatewayv2_stage.webhook, aws_lambda_permission.webhook, aws_cloudwatch_log_group.webhook_access,
      aws_secretsmanager_secret.webhook, aws_secretsmanager_secret_version.webhook,
    ] : length(resources)]) == 0
    error_message = "create_webhook: a resource remains"
  }

  assert {
    condition = alltrue([for resources in [
      aws_lambda_function.functions, aws_lambda_alias.live, aws_iam_role.functions,
      aws_cloudwatch_log_group.functions, aws_iam_role_policy.functions, aws_iam_role_policy.keys,
    ] : keys(resources) == ["order", "publish", "reconcile", "refund"]])
    error_message = "create_webhook: a part of the function remains"
  }

  assert {
    condition = alltrue([for value in [
      output.webhook_url, output.webhook_api_id, output.webhook_function_name, output.webhook_log_group,
      output.webhook_access_log_group, output.webhook_secret_arn,
    ] : value == null])
    error_message = "create_webhook: an output remains"
  }
}

run "without_refunds_all_of_theirs_is_removed_and_nothing_can_make_one" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    create_refund             = false
    stripe_refund_key_version = 1
  }

  assert {
    condition = !can(regex("refund", jsonencode([
      keys(aws_lambda_function.functions), keys(aws_sqs_queue.queues), keys(aws_sqs_queue.dead_letters),
      keys(aws_iam_role.functions), keys(aws_lambda_event_source_mapping.queues), keys(aws_sqs_queue_policy.queues),
      setsubtract(keys(aws_cloudwatch_metric_alarm.alarms), ["refunded-outside"]),
    ]))) && length(aws_secretsmanager_secret.stripe_refund) == 0
    error_message = "create_refund: a part of the function remains"
  }

  assert {
    condition = (
      output.refund_queue_url == null && output.refund_dead_letter_queue_url == null
      && !strcontains(output.operator_environment, "REFUND")
    )
    error_message = "create_refund: an output remains"
  }
}
