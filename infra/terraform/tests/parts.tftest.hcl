# What is optional: orders by HTTP, stock, receipts, an example subscriber. permissions.tftest.hcl
# has their roles, alarms.tftest.hcl their alarms.

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
}

# First, because pins.tf keeps standard queues.
run "queues_of_events_are_standard_queues_even_with_fifo" {
  command = plan

  variables {
    fifo = true
  }

  assert {
    condition = alltrue([for name in ["receipts", "paid"] :
      aws_sqs_queue.queues[name].name == "orderonce-dev-${name}" && aws_sqs_queue.queues[name].fifo_queue != true
      && aws_sqs_queue.dead_letters["${name}-dead"].name == "orderonce-dev-${name}-dead"
      && aws_sqs_queue.dead_letters["${name}-dead"].fifo_queue != true
    ])
    error_message = "queues: a rule sends no message group"
  }
}

run "each_function_has_its_environment" {
  assert {
    condition = jsonencode({ for name, function in aws_lambda_function.functions :
      name => function.environment[0].variables if contains(["intake", "receipt"], name)
      }) == jsonencode({
      intake = {
        ORDERS_TABLE = "orderonce-dev-orders"
        QUEUE_URL    = aws_sqs_queue.queues["orders"].url
        SCOPE        = "orderonce-dev-836569"
      }
      receipt = {
        RECEIPTS_TABLE            = "orderonce-dev-receipts"
        QUEUE_URL                 = aws_sqs_queue.queues["receipts"].url
        DEAD_LETTER_QUEUE_URL     = aws_sqs_queue.dead_letters["receipts-dead"].url
        SCOPE                     = "orderonce-dev-836569"
        STRIPE_SECRET_ARN         = aws_secretsmanager_secret.stripe.arn
        RECEIPT_FROM              = "receipts@shop.invalid"
        RECEIPT_CONFIGURATION_SET = "shop-receipts"
        RECEIPTS                  = "at_most_once"
      }
    })
    error_message = "environment: differs from docs/reference/configuration.md"
  }

  # Without the table, an order or its cancellation would leak stock. publish needs none.
  assert {
    condition = jsonencode({ for name, function in aws_lambda_function.functions : name => {
      for variable, value in function.environment[0].variables : variable => value if startswith(variable, "STOCK_")
      } if !contains(["intake", "receipt"], name) }) == jsonencode({
      order     = { STOCK_TABLE = "orderonce-dev-stock" }
      publish   = {}
      reconcile = { STOCK_TABLE = "orderonce-dev-stock", STOCK_HOLD = "24h" }
      refund    = {}
      webhook   = { STOCK_TABLE = "orderonce-dev-stock" }
    })
    error_message = "environment: STOCK_TABLE is not that of the functions that write orders"
  }

  # An HTTP API waits for 30 s. Receipt reads the Stripe key, so a rotation must publish it.
  assert {
    condition = { for name, f in aws_lambda_function.functions : name => join(" ", [
      f.memory_size, f.timeout, f.description, f.source_code_hash,
      ]) if contains(["intake", "receipt"], name) } == { for name, settings in {
      intake  = "256 15 Accepts orders by HTTP."
      receipt = "256 60 Sends a receipt for each paid order. Key 1."
      } : name => join(" ", [
        settings, "Zip", filesha256("tests/packages/${name}.zip"), filebase64sha256("tests/packages/${name}.zip"),
    ]) }
    error_message = "functions: differ from this list"
  }

  assert {
    condition = alltrue([for name in ["intake", "receipt"] :
      aws_lambda_function.functions[name].reserved_concurrent_executions == null
      && aws_cloudwatch_log_group.functions[name].retention_in_days == 90
    ])
    error_message = "functions: must reserve no concurrency, and their logs must expire"
  }

  assert {
    condition = jsonencode([
      output.stock_table, output.receipts_table, output.receipt_queue_url, output.receipt_dead_letter_queue_url,
      output.paid_queue_url, output.intake_url, output.intake_access_log_group, output.webhook_url,
      ]) == jsonencode([
      "orderonce-dev-stock", "orderonce-dev-receipts", aws_sqs_queue.queues["receipts"].url,
      aws_sqs_queue.dead_letters["receipts-dead"].url, aws_sqs_queue.queues["paid"].url,
      "https://orders.execute-api.eu-west-1.amazonaws.com/orders", "/aws/vendedlogs/orderonce-dev-intake-access",
      "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com/stripe/webhook", # Stripe knows it
    ])
    error_message = "outputs: one is missing or wrong, or orders by HTTP changed the webhook's API"
  }

  assert {
    condition = strcontains(output.operator_environment, join("\n", [
      "", "export STOCK_TABLE=orderonce-dev-stock", "export RECEIPTS_TABLE=orderonce-dev-receipts", "",
    ]))
    error_message = "operator_environment: the operator's tool would cancel orders without releasing stock"
  }
}

run "settings_can_be_changed" {
  variables {
    intake_burst_limit          = 20
    intake_rate_limit           = 10
    intake_reserved_concurrency = 10
    stock_hold_hours            = 2
    receipt_mode                = "at_least_once"
    deletion_protection         = false
  }

  assert {
    condition = jsonencode([for stage in concat(aws_apigatewayv2_stage.orders, aws_apigatewayv2_stage.webhook) : [
      stage.default_route_settings[0].throttling_burst_limit, stage.default_route_settings[0].throttling_rate_limit,
    ]]) == jsonencode([[20, 10], [100, 50]])
    error_message = "intake_burst_limit, intake_rate_limit: must apply to this API only"
  }

  assert {
    condition = { for name, function in aws_lambda_function.functions : name => function.reserved_concurrent_executions
      if function.reserved_concurrent_executions != null
    } == { intake = 10 }
    error_message = "intake_reserved_concurrency: must apply to this function only"
  }

  assert {
    condition = (
      aws_lambda_function.functions["reconcile"].environment[0].variables.STOCK_HOLD == "2h"
      && aws_lambda_function.functions["receipt"].environment[0].variables.RECEIPTS == "at_least_once"
    )
    error_message = "stock_hold_hours, receipt_mode: ignored"
  }

  assert {
    condition = alltrue([for table in [
      aws_dynamodb_table.orders, aws_dynamodb_table.stock[0], aws_dynamodb_table.receipts[0],
    ] : !table.deletion_protection_enabled])
    error_message = "deletion_protection: ignored, so destroy would fail"
  }
}

run "the_api_of_orders_has_three_routes_and_none_is_open" {
  assert {
    condition = jsonencode({ for route in aws_apigatewayv2_route.intake : route.route_key => [
      route.api_id, route.authorization_type, route.authorizer_id, route.target,
      ] }) == jsonencode({ for key in ["GET /orders/{orderId}", "POST /orders", "PUT /orders/{orderId}"] :
      key => ["orders", "AWS_IAM", null, "integrations/${aws_apigatewayv2_integration.intake[0].id}"]
    })
    error_message = "routes: must be these, each with IAM authorization, to the integration"
  }

  assert {
    condition = (
      aws_apigatewayv2_api.orders[0].protocol_type == "HTTP"
      && length(aws_apigatewayv2_api.orders[0].cors_configuration) == 0
      && length(aws_apigatewayv2_authorizer.intake) == 0
      && aws_apigatewayv2_stage.orders[0].api_id == "orders"
      && aws_apigatewayv2_stage.orders[0].name == "$default" && aws_apigatewayv2_stage.orders[0].auto_deploy
    )
    error_message = "API: must be an HTTP API without CORS, because no browser calls it, at a URL without a stage"
  }

  assert {
    condition = [for i in aws_apigatewayv2_integration.intake : [
      i.api_id, i.integration_uri, i.integration_type, i.integration_method, i.payload_format_version,
    ]] == [["orders", aws_lambda_alias.live["intake"].invoke_arn, "AWS_PROXY", "POST", "2.0"]]
    error_message = "integration: must invoke the alias live, which reads payload format 2.0 only"
  }

  assert {
    condition = { for p in aws_lambda_permission.intake :
      p.statement_id => join(" ", [p.principal, p.action, p.function_name, p.qualifier, p.source_arn])
      } == { for id, route in {
        IntakeGet = "GET/orders/{orderId}", IntakePost = "POST/orders", IntakePut = "PUT/orders/{orderId}"
        } : id => join(" ", [
          "apigateway.amazonaws.com lambda:InvokeFunction orderonce-dev-intake live",
          "arn:aws:execute-api:eu-west-1:123456789012:orders/$default/${route}",
    ]) }
    error_message = "permissions: must allow API Gateway to invoke the alias for each route, and nothing else"
  }

  assert {
    condition = (
      aws_apigatewayv2_stage.orders[0].default_route_settings[0].throttling_burst_limit == 100
      && aws_apigatewayv2_stage.orders[0].default_route_settings[0].throttling_rate_limit == 50
    )
    error_message = "throttling: must be 100 at once and 50 per second by default"
  }

  assert {
    condition = sort(values(jsondecode(aws_apigatewayv2_stage.orders[0].access_log_settings[0].format))) == sort([
      "$context.requestId", "$context.requestTime", "$context.identity.sourceIp", "$context.routeKey",
      "$context.status", "$context.error.message", "$context.responseLatency", "$context.integrationStatus",
      "$context.integrationLatency", "$context.integrationErrorMessage",
    ])
    error_message = "access logs: another field may contain customer data, a token or a signature"
  }

  assert {
    condition = (
      aws_apigatewayv2_stage.orders[0].access_log_settings[0].destination_arn
      == aws_cloudwatch_log_group.intake_access[0].arn
      && aws_cloudwatch_log_group.intake_access[0].retention_in_days == 90
    )
    error_message = "access logs: must go to their own group, and expire"
  }
}

run "tokens_can_replace_iam" {
  variables {
    intake_jwt = { issuer = "https://issuer.invalid/pool", audience = ["shop", "app"] }
  }

  assert {
    condition = alltrue([for route in aws_apigatewayv2_route.intake : (
      route.authorization_type == "JWT" && route.authorizer_id == "authorizer"
      && length(route.authorization_scopes) == 0
    )]) && length(aws_apigatewayv2_route.intake) == 3
    error_message = "routes: each must require a token, and no scope that nobody has asked for"
  }

  assert {
    condition = (
      aws_apigatewayv2_authorizer.intake[0].authorizer_type == "JWT"
      && aws_apigatewayv2_authorizer.intake[0].api_id == "orders"
      && aws_apigatewayv2_authorizer.intake[0].identity_sources == toset(["$request.header.Authorization"])
      && aws_apigatewayv2_authorizer.intake[0].jwt_configuration[0].issuer == "https://issuer.invalid/pool"
      && aws_apigatewayv2_authorizer.intake[0].jwt_configuration[0].audience == toset(["app", "shop"])
    )
    error_message = "authorizer: must accept tokens of the issuer, for the audiences"
  }

  assert {
    condition = { for name, value in aws_lambda_function.functions["intake"].environment[0].variables :
      name => value if endswith(name, "_CLAIM")
    } == { OWNER_CLAIM = "client_id" }
    error_message = "OWNER_CLAIM: callers would see the orders of all others, or a person would name prices"
  }

  assert {
    condition     = output.intake_caller_policy == null
    error_message = "intake_caller_policy: a caller with a token needs none"
  }
}

run "tokens_can_need_a_scope_and_claims" {
  command = plan

  variables {
    intake_jwt = {
      issuer               = "https://issuer.invalid"
      audience             = ["shop"]
      authorization_scopes = ["orders/put"]
      owner_claim          = "tenant"
      customer_claim       = "payer"
    }
  }

  assert {
    condition = (
      aws_lambda_function.functions["intake"].environment[0].variables.OWNER_CLAIM == "tenant"
      && aws_lambda_function.functions["intake"].environment[0].variables.CUSTOMER_CLAIM == "payer"
    )
    error_message = "intake_jwt: owner_claim or customer_claim is ignored"
  }

  assert {
    condition = length(aws_apigatewayv2_route.intake) == 3 && alltrue([
      for route in aws_apigatewayv2_route.intake : route.authorization_scopes == toset(["orders/put"])
    ])
    error_message = "authorization_scopes: every route must require one"
  }
}

# The name of the key, the protection and that no row expires: one that did could be sent again,
# or lose its stock.
run "the_optional_tables_are_protected_and_their_rows_never_expire" {
  assert {
    condition = alltrue([for table in [aws_dynamodb_table.stock[0], aws_dynamodb_table.receipts[0]] : (
      table.deletion_protection_enabled && table.point_in_time_recovery[0].enabled && length(table.ttl) == 0
      && table.billing_mode == "PAY_PER_REQUEST"
    )])
    error_message = "tables: must be protected, and their rows must not expire"
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

run "the_receipt_function_parks_before_sqs_does" {
  assert {
    condition = jsonencode([for name in ["receipts", "paid"] : jsondecode(aws_sqs_queue.queues[name].redrive_policy)]
      ) == jsonencode([
        { deadLetterTargetArn = aws_sqs_queue.dead_letters["receipts-dead"].arn, maxReceiveCount = 1000 },
        { deadLetterTargetArn = aws_sqs_queue.dead_letters["paid-dead"].arn, maxReceiveCount = 20 },
    ])
    error_message = "redrive_policy: must be the queue's own dead-letter queue, after as many receives"
  }

  assert {
    condition = { for name, policy in aws_sqs_queue_redrive_allow_policy.dead_letters :
      name => jsondecode(policy.redrive_allow_policy).sourceQueueArns if !contains(["orders-dead", "refunds-dead"], name)
    } == { receipts-dead = [aws_sqs_queue.queues["receipts"].arn] }
    error_message = "redrive_allow_policy: must name the receipt queue alone"
  }

  # A parked message must fit, and stay for longer than the function takes to park it.
  assert {
    condition = jsonencode([for q in [
      aws_sqs_queue.queues["receipts"], aws_sqs_queue.dead_letters["receipts-dead"],
      aws_sqs_queue.queues["paid"], aws_sqs_queue.dead_letters["paid-dead"],
      ] : [q.message_retention_seconds, q.sqs_managed_sse_enabled]]) == jsonencode([
      [604800, true], [1209600, true], [604800, true], [1209600, true],
      ]) && (aws_sqs_queue.queues["receipts"].receive_wait_time_seconds == 20
      && aws_sqs_queue.dead_letters["receipts-dead"].max_message_size == 1048576
    && aws_sqs_queue.queues["receipts"].visibility_timeout_seconds == 360)
    error_message = "queues: events of SES contain addresses; 360 s is 6 x the function's timeout"
  }

  assert {
    condition = [for m in [aws_lambda_event_source_mapping.queues["receipts"]] : [
      m.function_name, m.event_source_arn, m.batch_size, m.scaling_config[0].maximum_concurrency, m.enabled,
      length(m.filter_criteria), one(m.function_response_types),
      ]] == [[
      aws_lambda_alias.live["receipt"].arn, aws_sqs_queue.queues["receipts"].arn, 10, 2, true, 0,
      "ReportBatchItemFailures",
    ]]
    error_message = "mapping: must invoke the alias live and report each failed event, without a filter"
  }
}

# Last, because pins.tf keeps the key.
run "tables_use_the_given_key_and_queues_of_events_do_not" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
  }

  assert {
    condition = alltrue([for table in [aws_dynamodb_table.stock[0], aws_dynamodb_table.receipts[0]] :
      table.server_side_encryption[0].enabled && table.server_side_encryption[0].kms_key_arn == var.kms_key_arn
    ])
    error_message = "server_side_encryption: must use kms_key_arn"
  }

  assert {
    condition = { for name, q in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) :
      name => true if q.kms_master_key_id != null
    } == { orders = true, orders-dead = true, refunds = true, refunds-dead = true, unpublished = true }
    error_message = "queues: EventBridge could not send without a statement in the policy of the key"
  }
}
