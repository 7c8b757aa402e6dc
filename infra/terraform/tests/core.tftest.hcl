# A deployment with every part: names, functions, queues, tables, triggers. permissions.tftest.hcl has its
# policies, alarms.tftest.hcl its alarms, and parts.tftest.hcl what variables turn off or change.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  create_intake             = true
  create_receipts           = true
  receipt_from              = "receipts@shop.invalid"
  receipt_configuration_set = "shop-receipts"
  stock_tracking            = true
  create_example_subscriber = true
  webhook_secret_version    = 3
}

# First, because pins.tf rejects it once standard queues are in the state.
run "fifo_creates_fifo_queues_but_for_events" {
  command = plan

  variables {
    fifo = true
  }

  assert {
    condition = { for name, q in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) :
      name => q.name if q.fifo_queue == true
    } == { for name in ["orders", "refunds", "orders-dead", "refunds-dead"] : name => "orderonce-dev-${name}.fifo" }
    error_message = "fifo: ignored, or a queue of events is FIFO, but a rule sends no message group"
  }

  assert {
    condition = alltrue([for name, q in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) :
      q.deduplication_scope == "messageGroup" && q.fifo_throughput_limit == "perMessageGroupId"
      && q.content_based_deduplication == !endswith(name, "-dead") if endswith(q.name, ".fifo")
    ])
    error_message = "throughput and deduplication must be per message group; two parked messages may have the same body"
  }
}

run "every_name_contains_the_environment" {
  command = plan

  variables {
    environment = "other"
    scope       = "given"
    intake_jwt  = { issuer = "https://issuer.invalid", audience = ["shop"] }
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

  assert {
    condition = (
      output.scope == "given" && aws_lambda_function.functions["order"].environment[0].variables.SCOPE == "given"
    )
    error_message = "scope: got ${output.scope}"
  }
}

# The hash is of "210987654321/us-east-1".
run "the_default_scope_differs_between_accounts_and_regions" {
  command = plan

  override_data {
    target = data.aws_caller_identity.current
    values = { account_id = "210987654321" }
  }

  override_data {
    target = data.aws_region.current
    values = { region = "us-east-1" }
  }

  assert {
    condition     = output.scope == "orderonce-dev-2ac060"
    error_message = "scope: got ${output.scope}, two of them may share a Stripe account"
  }
}

# environments.txt has a line for each variable; docs/reference/configuration.md explains them. Without the
# stock table, an order or its cancellation would leak stock.
run "the_functions_have_these_settings" {
  variables {
    intake_jwt = { issuer = "https://issuer.invalid", audience = ["shop"], customer_claim = "payer" }
  }

  assert {
    condition = join("", flatten([for function, f in aws_lambda_function.functions : [
      for name, value in f.environment[0].variables : "${function} ${name}=${value}\n"
      ]])) == templatefile("tests/environments.txt", {
      queue   = { for name, q in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) : name => q.url }
      stripe  = aws_secretsmanager_secret.stripe.arn
      webhook = aws_secretsmanager_secret.webhook[0].arn
    })
    error_message = "environment: differs from tests/environments.txt"
  }

  # Memory, timeout, start of the description and zip. Secrets are read at a cold start, so a rotation must
  # publish the functions that read them: their descriptions have the versions. An HTTP API waits for 30 s.
  assert {
    condition = { for name, function in aws_lambda_function.functions : name => join(" ", [
      function.memory_size, function.timeout, function.description, function.source_code_hash,
      ]) } == { for name, settings in {
      order     = "256 30 Charges each order exactly once. Key 1."
      refund    = "256 30 Gives money of orders back once. Key 1."
      webhook   = "256 15 Settles orders after Stripe's webhooks. Key 1. Webhook secret 3."
      reconcile = "256 55 Settles orders that wait. Key 1."
      publish   = "256 30 Publishes the events of orders."
      intake    = "256 15 Accepts orders by HTTP."
      receipt   = "256 60 Sends a receipt for each paid order. Key 1."
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

# Name, retention, encryption, visibility timeout, long poll, greatest message. 180 s and 360 s are six times
# the timeouts of the functions. Messages keep their age, so dead letters stay for 14 days, the maximum. A
# parked message must fit with its attributes.
run "sqs_parks_messages_only_as_a_backstop_and_keeps_dead_letters_for_longer" {
  assert {
    condition = jsonencode({ for name, q in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) : name => [
      q.name, q.message_retention_seconds, q.sqs_managed_sse_enabled, q.fifo_queue == true,
      try(q.visibility_timeout_seconds, null), q.receive_wait_time_seconds, q.max_message_size,
      ] }) == jsonencode({ for name, settings in {
      orders        = [604800, true, false, 180, 20, 524288]
      orders-dead   = [1209600, true, false, null, 20, 1048576]
      paid          = [604800, true, false, null, 20, null]
      paid-dead     = [1209600, true, false, null, null, null]
      receipts      = [604800, true, false, 360, 20, null]
      receipts-dead = [1209600, true, false, null, 20, 1048576]
      refunds       = [604800, true, false, 180, 20, 524288]
      refunds-dead  = [1209600, true, false, null, 20, 1048576]
      unpublished   = [1209600, true, false, null, null, null]
    } : name => concat(["orderonce-dev-${name}"], settings) })
    error_message = "queues: differ from this list"
  }

  assert {
    condition = { for name, queue in aws_sqs_queue.queues : name => jsondecode(queue.redrive_policy) } == {
      for name, receives in { orders = 1000, refunds = 1000, receipts = 1000, paid = 20 } : name => {
        deadLetterTargetArn          = aws_sqs_queue.dead_letters["${name}-dead"].arn
        maxReceiveCount              = receives
      }
    }
    error_message = "redrive_policy: must be the queue's own dead-letter queue, after the function itself parks"
  }

  assert {
    condition = { for name, policy in aws_sqs_queue_redrive_allow_policy.dead_letters :
      name => jsondecode(policy.redrive_allow_policy)
      } == { for name in ["orders", "refunds", "receipts"] : "${name}-dead" => {
        redrivePermission = "byQueue"
        sourceQueueArns   = [aws_sqs_queue.queues[name].arn]
    } }
    error_message = "redrive_allow_policy: must name the queue of the same messages alone"
  }

  # One failed order must not redeliver its batch, and no filter deletes what does not match. Two batches of
  # ten of each stay below Stripe's default rate limit.
  assert {
    condition = { for name, mapping in aws_lambda_event_source_mapping.queues : name => join(" ", concat(
      [mapping.function_name, mapping.event_source_arn, mapping.batch_size, mapping.enabled],
      mapping.scaling_config[*].maximum_concurrency, tolist(mapping.function_response_types),
      tolist(mapping.metrics_config[0].metrics), [length(mapping.filter_criteria)],
      )) } == { for name, function in { orders = "order", refunds = "refund", receipts = "receipt" } : name => join(" ", [
      aws_lambda_alias.live[function].arn, aws_sqs_queue.queues[name].arn,
      "10 true 2 ReportBatchItemFailures EventCount 0",
    ]) }
    error_message = "mapping: must invoke the alias live with its queue, and report each failed message"
  }
}

# A row that expired could be charged or sent again, or lose its stock.
run "the_tables_are_protected_and_only_event_rows_expire" {
  assert {
    condition = jsonencode([for table in [
      aws_dynamodb_table.orders, aws_dynamodb_table.stock[0], aws_dynamodb_table.receipts[0],
      ] : [
      table.deletion_protection_enabled, table.point_in_time_recovery[0].enabled, table.billing_mode,
      table.server_side_encryption[0].enabled, [for ttl in table.ttl : ttl.attribute_name if ttl.enabled],
      ]]) == jsonencode([for expiry in [["expiresAt"], [], []] : [
      true, true, "PAY_PER_REQUEST", false, expiry,
    ]])
    error_message = "tables: must be protected, and only rows with expiresAt, which are events, may expire"
  }

  assert {
    condition = (
      aws_dynamodb_table.orders.stream_enabled && aws_dynamodb_table.orders.stream_view_type == "NEW_IMAGE"
    )
    error_message = "stream: must have new images"
  }
}

run "each_api_has_its_routes_which_alone_invoke_its_function" {
  assert {
    condition = jsonencode({ for route in concat(values(aws_apigatewayv2_route.intake), aws_apigatewayv2_route.webhook) :
      route.route_key => [route.api_id, try(route.authorization_type, null), route.authorizer_id, route.target]
      }) == jsonencode(merge(
      { for key in ["GET /orders/{orderId}", "POST /orders", "PUT /orders/{orderId}"] :
        key => ["orders", "AWS_IAM", null, "integrations/${aws_apigatewayv2_integration.intake[0].id}"]
      },
      { "POST /stripe/webhook" = [
        "a1b2c3d4e5", aws_apigatewayv2_route.webhook[0].authorization_type, null,
        "integrations/${aws_apigatewayv2_integration.webhook[0].id}",
      ] },
    ))
    error_message = "routes: must be these, those of orders with IAM authorization, to their integration"
  }

  assert {
    condition = jsonencode([for api in concat(aws_apigatewayv2_api.orders, aws_apigatewayv2_api.webhook) : [
      api.protocol_type, length(api.cors_configuration),
      ]]) == jsonencode([["HTTP", 0], ["HTTP", 0]]) && length(aws_apigatewayv2_authorizer.intake) == 0 && (
      [output.intake_url, output.webhook_url] == [ # Stripe knows the second
        "https://orders.execute-api.eu-west-1.amazonaws.com/orders",
        "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com/stripe/webhook",
    ])
    error_message = "API: must be an HTTP API without CORS, because no browser calls it, at this URL"
  }

  assert {
    condition = [for i in concat(aws_apigatewayv2_integration.intake, aws_apigatewayv2_integration.webhook) : [
      i.api_id, i.integration_uri, i.integration_type, i.integration_method, i.payload_format_version,
      ]] == [
      ["orders", aws_lambda_alias.live["intake"].invoke_arn, "AWS_PROXY", "POST", "2.0"],
      ["a1b2c3d4e5", aws_lambda_alias.live["webhook"].invoke_arn, "AWS_PROXY", "POST", "2.0"],
    ]
    error_message = "integration: must invoke the alias live, which reads payload format 2.0 only"
  }

  assert {
    condition = { for p in concat(values(aws_lambda_permission.intake), aws_lambda_permission.webhook) :
      p.statement_id => join(" ", [p.principal, p.action, p.function_name, p.qualifier, p.source_arn])
      } == { for id, source in {
        IntakeGet     = ["intake", "orders/$default/GET/orders/{orderId}"]
        IntakePost    = ["intake", "orders/$default/POST/orders"]
        IntakePut     = ["intake", "orders/$default/PUT/orders/{orderId}"]
        StripeWebhook = ["webhook", "a1b2c3d4e5/$default/POST/stripe/webhook"]
        } : id => join(" ", [
          "apigateway.amazonaws.com lambda:InvokeFunction orderonce-dev-${source[0]} live",
          "arn:aws:execute-api:eu-west-1:123456789012:${source[1]}",
    ]) }
    error_message = "permissions: must allow API Gateway to invoke the alias for each route, and nothing else"
  }

  assert {
    condition = jsonencode([for stage in concat(aws_apigatewayv2_stage.orders, aws_apigatewayv2_stage.webhook) : [
      stage.api_id, stage.name, stage.auto_deploy, stage.access_log_settings[0].destination_arn,
      stage.default_route_settings[0].throttling_burst_limit, stage.default_route_settings[0].throttling_rate_limit,
      ]]) == jsonencode([
      ["orders", "$default", true, aws_cloudwatch_log_group.intake_access[0].arn, 100, 50],
      ["a1b2c3d4e5", "$default", true, aws_cloudwatch_log_group.webhook_access[0].arn, 100, 50],
    ])
    error_message = "stages: must need no path, log to a group of their own, and accept 50 requests per second"
  }

  assert {
    condition = alltrue([for name, stage in {
      webhook = aws_apigatewayv2_stage.webhook[0], intake = aws_apigatewayv2_stage.orders[0],
      } : sort(values(jsondecode(stage.access_log_settings[0].format))) == sort(concat([
        "$context.requestId", "$context.requestTime", "$context.identity.sourceIp", "$context.routeKey",
        "$context.status", "$context.responseLatency", "$context.integrationStatus",
        "$context.integrationLatency", "$context.integrationErrorMessage",
    ], name == "intake" ? ["$context.error.message"] : []))])
    error_message = "access logs: another field may contain customer data, a token or a signature"
  }

  assert {
    condition = [for group in concat(
      aws_cloudwatch_log_group.intake_access, aws_cloudwatch_log_group.webhook_access,
      ) : "${group.name} ${group.retention_in_days}"] == [
      "/aws/vendedlogs/orderonce-dev-intake-access 90", "/aws/vendedlogs/orderonce-dev-webhook-access 90",
    ]
    error_message = "access logs: must expire"
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

run "events_are_published_in_order_and_none_is_dropped_in_silence" {
  # A failure must not repeat its batch, an outage must drop no events, and what the stream would drop at 24
  # hours must be reported before.
  assert {
    condition = jsonencode([for m in [aws_lambda_event_source_mapping.publish] : [
      m.event_source_arn, m.function_name, m.enabled, m.starting_position, m.batch_size, m.parallelization_factor,
      m.function_response_types, m.bisect_batch_on_function_error, m.maximum_retry_attempts,
      m.maximum_record_age_in_seconds, m.destination_config[0].on_failure[0].destination_arn,
      jsondecode(one(m.filter_criteria[0].filter).pattern),
      ]]) == jsonencode([[
      aws_dynamodb_table.orders.stream_arn, aws_lambda_alias.live["publish"].arn, true, "TRIM_HORIZON", 100, 1,
      ["ReportBatchItemFailures"], true, -1, 22 * 3600, aws_sqs_queue.dead_letters["unpublished"].arn,
      { eventName = ["INSERT"], dynamodb = { Keys = { sk = { S = [{ prefix = "event#" }] } } } },
    ]])
    error_message = "mapping: must publish the inserted rows whose sk begins with event#, from the beginning, in order"
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

run "rules_send_order_events_and_events_of_ses_to_the_queues" {
  assert {
    condition = jsonencode([for rule in concat(values(aws_cloudwatch_event_rule.receipts), aws_cloudwatch_event_rule.paid) :
      [rule.name, rule.event_bus_name, jsondecode(rule.event_pattern)]
      ]) == jsonencode([
      ["orderonce-dev-receipts-mail", "default", {
        source = ["aws.ses"]
        "detail-type" = [
          "Email Sent", "Email Delivered", "Email Bounced", "Email Complaint Received", "Email Rejected",
          "Email Rendering Failed",
        ]
        detail = { mail = { tags = { "ses:configuration-set" = ["shop-receipts"] } } }
      }],
      ["orderonce-dev-receipts-orders", "orderonce-dev-orders", {
        source = ["orderonce.orderonce-dev-836569"], "detail-type" = ["Order Paid", "Refund Succeeded"]
      }],
      ["orderonce-dev-paid", "orderonce-dev-orders", {
        source = ["orderonce.orderonce-dev-836569"], "detail-type" = ["Order Paid"]
      }],
    ])
    error_message = "rules: must match the events of this deployment and of its configuration set"
  }

  assert {
    condition = jsonencode([for target in concat(
      values(aws_cloudwatch_event_target.receipts), aws_cloudwatch_event_target.paid,
      ) : [target.rule, target.event_bus_name, target.arn, target.dead_letter_config[0].arn]
      ]) == jsonencode([for target in [
        ["receipts-mail", "default", "receipts"], ["receipts-orders", "orderonce-dev-orders", "receipts"],
        ["paid", "orderonce-dev-orders", "paid"],
        ] : [
        "orderonce-dev-${target[0]}", target[1], aws_sqs_queue.queues[target[2]].arn,
        aws_sqs_queue.dead_letters["${target[2]}-dead"].arn,
    ]])
    error_message = "targets: must be the queue, with its dead-letter queue"
  }
}

run "outputs_have_what_guides_and_runbooks_need" {
  assert {
    condition = jsonencode([
      output.order_queue_url, output.refund_queue_url, output.paid_queue_url, output.event_source_mapping_uuid,
      output.orders_table, output.orders_stream_arn, output.event_bus_name, output.event_bus_arn,
      output.event_archive_arn, output.event_source, output.apis, output.secrets, output.tables["receipts"],
      ]) == jsonencode([
      aws_sqs_queue.queues["orders"].url, aws_sqs_queue.queues["refunds"].url, aws_sqs_queue.queues["paid"].url,
      aws_lambda_event_source_mapping.queues["orders"].uuid, "orderonce-dev-orders",
      aws_dynamodb_table.orders.stream_arn, "orderonce-dev-orders", aws_cloudwatch_event_bus.orders.arn,
      "arn:aws:events:eu-west-1:123456789012:archive/orders", "orderonce.orderonce-dev-836569",
      { orderonce-dev-orders = "orders", orderonce-dev-webhook = "a1b2c3d4e5" },
      { stripe = aws_secretsmanager_secret.stripe.arn, webhook = aws_secretsmanager_secret.webhook[0].arn },
      { name = "orderonce-dev-receipts", arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/receipts" },
    ])
    error_message = "outputs: one is missing or wrong"
  }

  assert {
    condition = (
      output.functions == { for name, alias in aws_lambda_alias.live :
        name => { name = "orderonce-dev-${name}", alias = alias.arn, role = aws_iam_role.functions[name].arn }
      }
      && output.log_groups == merge(
        { for name in keys(aws_lambda_function.functions) : name => "/aws/lambda/orderonce-dev-${name}" },
        { for name in ["webhook-access", "intake-access"] : name => "/aws/vendedlogs/orderonce-dev-${name}" },
      )
      && output.queues == { for name, queue in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) :
        name => { url = queue.url, arn = queue.arn }
      }
    )
    error_message = "outputs: a function, a log group or a queue is missing or wrong"
  }

  assert {
    condition = strcontains(output.operator_environment, join("\n", [
      "", "export STOCK_TABLE=orderonce-dev-stock", "export RECEIPTS_TABLE=orderonce-dev-receipts", "",
    ]))
    error_message = "operator_environment: the operator's tool would cancel orders without releasing stock"
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
    condition = [for w in aws_dynamodb_table.orders.warm_throughput : [
      w.write_units_per_second, w.read_units_per_second,
    ]] == [[8000, 12000]]
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

# Last, because pins.tf keeps the key.
run "kms_key_arn_encrypts_queues_tables_and_secrets_but_no_queues_of_events" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
  }

  assert {
    condition = alltrue(concat(
      [for key in concat([aws_secretsmanager_secret.stripe.kms_key_id], aws_secretsmanager_secret.webhook[*].kms_key_id) :
        key == var.kms_key_arn
      ],
      [for table in [aws_dynamodb_table.orders, aws_dynamodb_table.stock[0], aws_dynamodb_table.receipts[0]] :
        table.server_side_encryption[0].enabled && table.server_side_encryption[0].kms_key_arn == var.kms_key_arn
      ],
    ))
    error_message = "kms_key_arn: ignored by a table or a secret"
  }

  assert {
    condition = { for name, q in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) :
      name => true if q.kms_master_key_id == var.kms_key_arn
    } == { orders = true, orders-dead = true, refunds = true, refunds-dead = true, unpublished = true }
    error_message = "queues: EventBridge could not send without a statement in the policy of the key"
  }
}
